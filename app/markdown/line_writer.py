"""Writes lines of a document, and rewrites changed lines from the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextTable

from app.markdown.formats import Formats, LineLook
from app.markdown.model import CodeBlock, MarkdownBlock, Paragraph, Table, ThematicBreak
from app.markdown.spans import Span, Spans, utf16_length


class LineWriter:
    """Writes the lines of blocks; each line is one QTextBlock.

    Args:
        document: The document.
        formats: Character and block formats of the current theme.
    """

    def __init__(self, document: QTextDocument, formats: Formats) -> None:
        self._document = document
        self._formats = formats

    def cursor(self, position: int) -> QTextCursor:
        """Return a cursor at a document position."""
        cursor = QTextCursor(self._document)
        cursor.setPosition(position)
        return cursor

    def insert(self, cursor: QTextCursor, spans: Sequence[Span], look: LineLook) -> None:
        """Insert spans; neighbours of the same format in one call."""
        for _look_key, same in groupby(spans, key=lambda span: span[1:5]):
            pieces = list(same)
            text = "".join(span.text for span in pieces)
            cursor.insertText(text, self._formats.chars(pieces[0], look))

    def add_code_line(self, cursor: QTextCursor, spans: Spans, look: LineLook) -> None:
        """Add a line of code after the cursor's."""
        cursor.insertBlock(self._formats.code_line(), self._formats.line(look))
        self.insert(cursor, spans, look)

    def begin_cell(self, table: QTextTable, block: Table, row: int, column: int) -> QTextCursor:
        """Set the formats of an empty cell."""
        look = look_of(block, row * len(block.alignments) + column)
        cursor = table.cellAt(row, column).firstCursorPosition()
        alignments = block.alignments[:: -1 if block.is_rtl else 1]
        cursor.setBlockFormat(self._formats.cell(alignments[column]))
        cursor.setBlockCharFormat(self._formats.line(look))
        return cursor

    def patch(
        self,
        first_line: int,
        block: MarkdownBlock,
        old_lines: Sequence[Spans],
        new_lines: Sequence[Spans],
    ) -> None:
        """Replace the lines of a block.

        Args:
            first_line: Document position of the first line.
            block: The new block.
            old_lines: Current lines.
            new_lines: New lines; only code may have another number of them.
        """
        number = self._document.findBlock(first_line).blockNumber()
        for i, (old, new) in enumerate(zip(old_lines, new_lines, strict=False)):
            if old != new:
                line = self._document.findBlockByNumber(number + i)
                self._patch_line(line, old, new, look_of(block, i))
        num_shared = min(len(old_lines), len(new_lines))
        last = self._document.findBlockByNumber(number + num_shared - 1)
        if len(old_lines) > num_shared:
            self._remove_lines(last, len(old_lines) - num_shared)
        elif len(new_lines) > num_shared:
            cursor = self.cursor(_end(last))
            for i in range(num_shared, len(new_lines)):
                self.add_code_line(cursor, new_lines[i], look_of(block, i))

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
        cursor = self.cursor(at)
        cursor.setPosition(_end(line), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self.insert(cursor, rest, look)

    def _remove_lines(self, last_kept: QTextBlock, num_lines: int) -> None:
        cursor = self.cursor(_end(last_kept))
        end = last_kept
        for _ in range(num_lines):
            end = end.next()
        cursor.setPosition(_end(end), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()


def look_of(block: MarkdownBlock, line: int) -> LineLook:
    """Return the properties of a block's line."""
    is_quoted = block.place.quote_depth > 0
    match block:
        case Paragraph():
            return LineLook(level=block.level, is_quoted=is_quoted)
        case CodeBlock():
            return LineLook(is_code=True)
        case Table():
            is_header = line < len(block.alignments)
            return LineLook(is_header=is_header, is_quoted=is_quoted)
        case ThematicBreak():
            return LineLook()


def _end(block: QTextBlock) -> int:
    """Document position after the last character of a block."""
    return block.position() + block.length() - 1
