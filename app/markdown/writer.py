"""Blocks → QTextDocument, changing only what differs from what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextTable

from app.markdown.formats import Formats, LineLook
from app.markdown.highlight import line_inks
from app.markdown.model import Block, CodeBlock, Paragraph, Rule, Table, runs_of
from app.markdown.tokens import Span, Spans, TokenMap, spans_of_line, utf16_length


@dataclass(slots=True)
class _Written:
    """A block in the document.

    Attributes:
        block: What was written.
        start: Length of the document before it.
        on_spacer: Whether the document ended in an unused spacer before it.
        first_line: Document position of its first line.
        lines: Spans of its lines; each line is one QTextBlock.
    """

    block: Block
    start: int
    on_spacer: bool
    first_line: int
    lines: list[Spans]


class DocumentWriter:
    """Keeps a document equal to a growing list of blocks.

    Only the end of the list, which is not yet frozen, is ever compared and rewritten; lines that
    stay keep their QTextBlock, lines that grow get only what is new.

    Args:
        document: Cleared and then filled; nobody else may change it.
        tokens: Tokens of the answer.
        formats: How things look.
    """

    def __init__(self, document: QTextDocument, tokens: TokenMap, formats: Formats) -> None:
        self._document = document
        self._tokens = tokens
        self._written: list[_Written] = []
        self._num_frozen = 0
        self._held: list[Block] = []
        self._on_spacer = True
        self._formats = formats
        self.clear()

    def clear(self) -> None:
        """Empty the document."""
        self._document.clear()
        self._document.setUndoRedoEnabled(False)
        self._document.setIndentWidth(self._formats.indent_px)
        self._written.clear()
        self._num_frozen = 0
        self._held.clear()
        self._on_spacer = True
        self._mark_spacer()

    def rewrite(self, formats: Formats) -> None:
        """Write everything anew with other formats."""
        blocks = [written.block for written in self._written]
        num_frozen, held = self._num_frozen, list(self._held)
        self._formats = formats
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        self.clear()
        for block in blocks:
            self._write(block)
        cursor.endEditBlock()
        self._num_frozen, self._held = num_frozen, held

    def show_tail(self, blocks: Sequence[Block]) -> None:
        """Make the part after the frozen blocks equal to these blocks.

        Args:
            blocks: All blocks after the frozen ones.
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
        """Promise that so many more blocks won't change."""
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

    # What is there and stays ---------------------------------------------------------------------

    def _num_same(self, blocks: Sequence[Block]) -> int:
        num_same = 0
        for written, block in zip(self._written[self._num_frozen :], blocks, strict=False):
            if written.block != block:
                break
            num_same += 1
        return num_same

    def _cut(self, num_kept: int) -> None:
        """Remove all blocks but the first ones, and empty paragraphs at the new end."""
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

    def _patch(self, written: _Written, block: Block) -> bool:
        """Turn the last block of the document into another of its kind, if that can be done."""
        if not _can_become(written.block, block):
            return False
        lines = self._lines_of(block, written)
        if isinstance(block, Table):
            self._grow_table(written, block)
        self._patch_lines(written, block, lines)
        written.block = block
        return True

    def _grow_table(self, written: _Written, block: Table) -> None:
        table = self._cursor(written.first_line).currentTable()
        first = table.rows()
        if first == len(block.rows):
            return
        table.appendRows(len(block.rows) - first)
        for row in range(first, table.rows()):
            for column in range(table.columns()):
                self._begin_cell(table, block, row, column)
                written.lines.append(())

    def _patch_lines(self, written: _Written, block: Block, new_lines: list[Spans]) -> None:
        number = self._document.findBlock(written.first_line).blockNumber()
        for i, (old, new) in enumerate(zip(written.lines, new_lines, strict=False)):
            if old != new:
                line = self._document.findBlockByNumber(number + i)
                self._patch_line(line, old, new, _look(block, i))
        num_shared = min(len(written.lines), len(new_lines))
        last = self._document.findBlockByNumber(number + num_shared - 1)
        if len(written.lines) > num_shared:
            self._remove_lines(last, len(written.lines) - num_shared)
        elif len(new_lines) > num_shared:
            cursor = self._cursor(_end(last))
            for i in range(num_shared, len(new_lines)):
                self._add_code_line(cursor, new_lines[i], _look(block, i))
        written.lines = new_lines

    def _patch_line(self, line: QTextBlock, old: Spans, new: Spans, look: LineLook) -> None:
        """Replace the end of a line, from the first character that differs."""
        at, rest = line.position(), list(new)
        for old_span in old:
            if (
                not rest
                or rest[0][1:] != old_span[1:]
                or not rest[0].text.startswith(old_span.text)
            ):
                break
            at += utf16_length(old_span.text)
            if rest[0].text != old_span.text:
                rest[0] = rest[0]._replace(text=rest[0].text[len(old_span.text) :])
                break
            rest.pop(0)
        cursor = self._cursor(at)
        cursor.setPosition(_end(line), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._insert(cursor, rest, look)

    def _remove_lines(self, last_kept: QTextBlock, num_lines: int) -> None:
        cursor = self._cursor(_end(last_kept))
        end = last_kept
        for _ in range(num_lines):
            end = end.next()
        cursor.setPosition(_end(end), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()

    # What is new ---------------------------------------------------------------------------------

    def _write(self, block: Block) -> None:
        start, on_spacer = self._document.characterCount() - 1, self._on_spacer
        lines = self._lines_of(block, None)
        cursor = self._cursor(start)
        match block:
            case Paragraph():
                first_line = self._write_paragraph(cursor, block, lines[0])
            case Rule():
                self._begin_block(cursor)
                cursor.setBlockFormat(self._formats.rule(block.place))
                cursor.setBlockCharFormat(self._formats.line(_look(block, 0)))
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
        """Move to a fresh block, which is the spacer if there is one."""
        if not self._on_spacer:
            cursor.insertBlock(self._formats.spacer())

    def _write_paragraph(self, cursor: QTextCursor, block: Paragraph, spans: Spans) -> int:
        self._begin_block(cursor)
        cursor.setBlockFormat(self._formats.paragraph(block, is_first=not self._written))
        cursor.setBlockCharFormat(self._formats.line(_look(block, 0)))
        if block.place.marker is not None:
            cursor.createList(self._formats.marker(block.place.marker, block.place))
        first_line = cursor.position()
        self._insert(cursor, spans, _look(block, 0))
        return first_line

    def _write_code(self, cursor: QTextCursor, block: CodeBlock, lines: list[Spans]) -> int:
        frame = cursor.insertFrame(self._formats.code_frame(block.place))
        cursor = frame.firstCursorPosition()
        cursor.setBlockFormat(self._formats.code_line())
        cursor.setBlockCharFormat(self._formats.line(_look(block, 0)))
        self._insert(cursor, lines[0], _look(block, 0))
        for spans in lines[1:]:
            self._add_code_line(cursor, spans, _look(block, 0))
        return frame.firstPosition()

    def _add_code_line(self, cursor: QTextCursor, spans: Spans, look: LineLook) -> None:
        cursor.insertBlock(self._formats.code_line(), self._formats.line(look))
        self._insert(cursor, spans, look)

    def _write_table(self, cursor: QTextCursor, block: Table, lines: list[Spans]) -> int:
        num_columns = len(block.alignments)
        table = cursor.insertTable(len(block.rows), num_columns, self._formats.table(block.place))
        for i, spans in enumerate(lines):
            cursor = self._begin_cell(table, block, *divmod(i, num_columns))
            self._insert(cursor, spans, _look(block, i))
        return table.firstPosition()

    def _begin_cell(self, table: QTextTable, block: Table, row: int, column: int) -> QTextCursor:
        """Set the formats of an empty cell."""
        look = _look(block, row * len(block.alignments) + column)
        cursor = table.cellAt(row, column).firstCursorPosition()
        cursor.setBlockFormat(self._formats.cell(block.alignments[column]))
        cursor.setBlockCharFormat(self._formats.line(look))
        return cursor

    def _insert(self, cursor: QTextCursor, spans: Sequence[Span], look: LineLook) -> None:
        """Insert spans, with one call for neighbours that look the same."""
        for _look_key, same in groupby(spans, key=lambda span: span[1:5]):
            pieces = list(same)
            text = "".join(span.text for span in pieces)
            cursor.insertText(text, self._formats.chars(pieces[0], look))

    def _lines_of(self, block: Block, written: _Written | None) -> list[Spans]:
        """Spans of each line of a block; those of unchanged lines are taken from before."""
        lines = runs_of(block)
        old = written.block if written is not None else None
        if not isinstance(block, CodeBlock):
            known = list(zip(runs_of(old), written.lines, strict=True)) if old and written else []
            return [
                known[i][1]
                if i < len(known) and known[i][0] == runs
                else spans_of_line(runs, self._tokens)
                for i, runs in enumerate(lines)
            ]
        num_same = 0
        if isinstance(old, CodeBlock) and old.is_open and block.is_open:
            num_same = _num_same_lines(old.lines, lines)
        fresh = lines[num_same:]
        texts = tuple("".join(run.text for run in runs) for runs in fresh)
        inks = line_inks(texts, block.language, is_open=block.is_open)
        kept = written.lines[:num_same] if written is not None else []
        return kept + [
            spans_of_line(runs, self._tokens, stretches)
            for runs, stretches in zip(fresh, inks, strict=True)
        ]

    def _mark_spacer(self) -> None:
        """Make the last block of the document a spacer."""
        cursor = self._cursor(self._document.characterCount() - 1)
        cursor.setBlockFormat(self._formats.spacer())

    def _cursor(self, position: int) -> QTextCursor:
        cursor = QTextCursor(self._document)
        cursor.setPosition(position)
        return cursor


def _look(block: Block, line: int) -> LineLook:
    """What the characters of a line of a block share."""
    is_quoted = block.place.quote_depth > 0
    match block:
        case Paragraph():
            return LineLook(level=block.level, is_quoted=is_quoted)
        case CodeBlock():
            return LineLook(is_code=True)
        case Table():
            is_header = line < len(block.alignments)
            return LineLook(is_header=is_header, is_quoted=is_quoted)
        case Rule():
            return LineLook()


def _can_become(old: Block, new: Block) -> bool:
    """Whether a written block can be turned into another by changing its lines alone."""
    if old.place != new.place:
        return False
    match old, new:
        case Paragraph(), Paragraph():
            # An empty paragraph has lost the format of its characters.
            return old.level == new.level and bool(old.runs)
        case CodeBlock(), CodeBlock():
            return old.language == new.language
        case Table(), Table():
            return old.alignments == new.alignments and len(old.rows) <= len(new.rows)
    return False


def _is_empty(block: Block) -> bool:
    return isinstance(block, Rule) or (isinstance(block, Paragraph) and not block.runs)


def _num_same_lines(old: Sequence[object], new: Sequence[object]) -> int:
    num_same = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        num_same += 1
    return num_same


def _end(block: QTextBlock) -> int:
    """Document position after the last character of a block."""
    return block.position() + block.length() - 1
