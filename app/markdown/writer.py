"""Writes blocks to a QTextDocument, and rewrites only changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QTextCursor, QTextDocument

from app.markdown.formats import Formats
from app.markdown.line_writer import LineWriter, look_of
from app.markdown.model import (
    CodeBlock,
    MarkdownBlock,
    Paragraph,
    Runs,
    Table,
    ThematicBreak,
    runs_of,
)
from app.markdown.spans import Span, Spans, spans_of_block, utf16_length
from medusa_core.chats.answer_text import AnswerText


@dataclass(slots=True)
class _Written:
    """Block in the document.

    Attributes:
        block: The block.
        start: Length of the document before it.
        on_spacer: Whether the document ended with an unused spacer before it.
        first_line: Document position of its first line.
        lines: Spans of its lines; each line is one QTextBlock.
    """

    block: MarkdownBlock
    start: int
    on_spacer: bool
    first_line: int
    lines: list[Spans]


class DocumentWriter:
    """Keeps a document equal to a growing list of blocks.

    Only the end of the list that isn't frozen is compared and rewritten; unchanged lines
    keep their QTextBlock, growing lines get only new text.

    Args:
        document: The document, which only the writer may change.
        tokens: The answer, which maps characters to tokens.
        formats: Formats of the style.
    """

    def __init__(self, document: QTextDocument, tokens: AnswerText, formats: Formats) -> None:
        self._document = document
        self._tokens = tokens
        self._written: list[_Written] = []
        self._num_frozen = 0
        self._held: list[MarkdownBlock] = []
        self._on_spacer = True
        self.clear(formats)

    def clear(self, formats: Formats) -> None:
        """Clear the document, and set the formats."""
        self._formats = formats
        self._line_writer = LineWriter(self._document, formats)
        self._document.clear()
        self._document.setUndoRedoEnabled(False)
        self._document.setIndentWidth(self._formats.indent_px)
        self._written.clear()
        self._num_frozen = 0
        self._held.clear()
        self._on_spacer = True
        self._mark_spacer()

    def rewrite(self, formats: Formats) -> None:
        """Write everything again with other formats."""
        blocks = [written.block for written in self._written]
        num_frozen, held = self._num_frozen, list(self._held)
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        self.clear(formats)
        for block in blocks:
            self._write(block)
        cursor.endEditBlock()
        self._num_frozen, self._held = num_frozen, held

    def show_tail(self, blocks: Sequence[MarkdownBlock]) -> None:
        """Replace the blocks after the frozen ones.

        Args:
            blocks: The new blocks.
        """
        wanted = (*self._held, *blocks)
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        num_same = self._num_same(wanted)
        first = self._num_frozen + num_same
        self._cut(first + 1)
        patched = (
            num_same < len(wanted)
            and first < len(self._written)
            and self._patch(self._written[first], wanted[num_same])
        )
        if not patched:
            self._cut(first)
        for block in wanted[len(self._written) - self._num_frozen :]:
            self._write(block)
        cursor.endEditBlock()

    def freeze(self, num_blocks: int) -> None:
        """Freeze further blocks, which won't change any more."""
        end = self._num_frozen + len(self._held) + num_blocks
        self._held.clear()
        # An empty block can't stay when what follows it is cut off: it would inherit its format.
        while end > 0 and _is_empty(self._written[end - 1].block):
            end -= 1
            self._held.insert(0, self._written[end].block)
        self._num_frozen = end

    def lines(self) -> Iterator[tuple[int, Spans]]:
        """Document position and spans of each line of text, in order."""
        for written in self._written:
            block = self._document.findBlock(written.first_line)
            for spans in written.lines:
                yield block.position(), spans
                block = block.next()

    def blocks(self) -> Iterator[tuple[MarkdownBlock, list[tuple[int, Runs]]]]:
        """Each block with the document position and the runs of its lines, in order."""
        for written in self._written:
            line = self._document.findBlock(written.first_line)
            lines: list[tuple[int, Runs]] = []
            for runs in runs_of(written.block):
                lines.append((line.position(), runs))
                line = line.next()
            yield written.block, lines

    def spans(self) -> Iterator[tuple[int, Span]]:
        """Document position of each span, in order."""
        for position, spans in self.lines():
            at = position
            for span in spans:
                yield at, span
                at += utf16_length(span.text)

    # What is there and stays ---------------------------------------------------------------------

    def _num_same(self, blocks: Sequence[MarkdownBlock]) -> int:
        num_same = 0
        for written, block in zip(self._written[self._num_frozen :], blocks, strict=False):
            if written.block != block:
                break
            num_same += 1
        return num_same

    def _cut(self, num_kept: int) -> None:
        """Remove all blocks except the first ones, and empty paragraphs at the new end."""
        while 0 < num_kept < len(self._written) and _is_empty(self._written[num_kept - 1].block):
            num_kept -= 1
        if num_kept >= len(self._written):
            return
        first = self._written[num_kept]
        cursor = QTextCursor(self._document)
        cursor.setPosition(first.start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._on_spacer = first.on_spacer
        if self._on_spacer:
            self._mark_spacer()
        del self._written[num_kept:]

    def _patch(self, written: _Written, block: MarkdownBlock) -> bool:
        """Change the last block of the document into another of its kind, if possible."""
        if not _can_become(written.block, block):
            return False
        lines = spans_of_block(block, self._tokens, written.block, written.lines)
        if isinstance(block, Table):
            self._grow_table(written, block)
        self._line_writer.patch(written.first_line, block, written.lines, lines)
        written.block, written.lines = block, lines
        return True

    def _grow_table(self, written: _Written, block: Table) -> None:
        table = self._line_writer.cursor(written.first_line).currentTable()
        first = table.rows()
        if first == len(block.rows):
            return
        table.appendRows(len(block.rows) - first)
        for row in range(first, table.rows()):
            for column in range(table.columns()):
                self._line_writer.begin_cell(table, block, row, column)
                written.lines.append(())

    # What is new ---------------------------------------------------------------------------------

    def _write(self, block: MarkdownBlock) -> None:
        start, on_spacer = self._document.characterCount() - 1, self._on_spacer
        lines = spans_of_block(block, self._tokens)
        cursor = self._line_writer.cursor(start)
        match block:
            case Paragraph():
                first_line = self._write_paragraph(cursor, block, lines[0])
            case ThematicBreak():
                self._begin_block(cursor)
                cursor.setBlockFormat(self._formats.rule(block.place))
                cursor.setBlockCharFormat(self._formats.line(look_of(block, 0)))
                first_line = cursor.position()
            case CodeBlock():
                first_line = self._write_code(cursor, block, lines)
            case Table():
                first_line = self._write_table(cursor, block, lines)
        self._on_spacer = isinstance(block, CodeBlock | Table)
        if self._on_spacer:
            self._mark_spacer()
        self._written.append(_Written(block, start, on_spacer, first_line, lines))

    def _begin_block(self, cursor: QTextCursor) -> None:
        """Move to a new block, which is the spacer if there is one."""
        if not self._on_spacer:
            cursor.insertBlock(self._formats.spacer())

    def _write_paragraph(self, cursor: QTextCursor, block: Paragraph, spans: Spans) -> int:
        self._begin_block(cursor)
        cursor.setBlockFormat(self._formats.paragraph(block, is_first=not self._written))
        cursor.setBlockCharFormat(self._formats.line(look_of(block, 0)))
        if block.place.marker is not None:
            cursor.createList(self._formats.marker(block.place.marker, block.place))
        first_line = cursor.position()
        self._line_writer.insert(cursor, spans, look_of(block, 0))
        return first_line

    def _write_code(self, cursor: QTextCursor, block: CodeBlock, lines: list[Spans]) -> int:
        frame = cursor.insertFrame(self._formats.code_frame(block.place, block.language))
        cursor = frame.firstCursorPosition()
        cursor.setBlockFormat(self._formats.code_line())
        cursor.setBlockCharFormat(self._formats.line(look_of(block, 0)))
        self._line_writer.insert(cursor, lines[0], look_of(block, 0))
        for spans in lines[1:]:
            self._line_writer.add_code_line(cursor, spans, look_of(block, 0))
        return frame.firstPosition()

    def _write_table(self, cursor: QTextCursor, block: Table, lines: list[Spans]) -> int:
        num_columns = len(block.alignments)
        fmt = self._formats.table(block.place, is_rtl=block.is_rtl)
        table = cursor.insertTable(len(block.rows), num_columns, fmt)
        for i, spans in enumerate(lines):
            cursor = self._line_writer.begin_cell(table, block, *divmod(i, num_columns))
            self._line_writer.insert(cursor, spans, look_of(block, i))
        return table.firstPosition()

    def _mark_spacer(self) -> None:
        """Make the last block of the document a spacer."""
        cursor = self._line_writer.cursor(self._document.characterCount() - 1)
        cursor.setBlockFormat(self._formats.spacer())


def _can_become(old: MarkdownBlock, new: MarkdownBlock) -> bool:
    """Whether a written block can be changed into another by its lines alone."""
    if old.place != new.place:
        return False
    match old, new:
        case Paragraph(), Paragraph():
            # An empty paragraph has lost the format of its characters.
            same = (old.level, old.goes_on) == (new.level, new.goes_on)
            return same and bool(old.runs)
        case CodeBlock(), CodeBlock():
            return old.language == new.language
        case Table(), Table():
            same = (old.alignments, old.is_rtl) == (new.alignments, new.is_rtl)
            return same and len(old.rows) <= len(new.rows)
    return False


def _is_empty(block: MarkdownBlock) -> bool:
    return isinstance(block, ThematicBreak) or (isinstance(block, Paragraph) and not block.runs)
