"""Convert the selected part of a rendered answer to plain text and HTML for the clipboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from app.markdown.model import (
    CITATION,
    LINE_BREAK,
    UNKNOWN_CITATION,
    CodeBlock,
    MarkdownBlock,
    Marker,
    Paragraph,
    Place,
    Run,
    Runs,
    Table,
    TextStyle,
)
from app.markdown.spans import utf16_length, utf16_slice

_TAGS = {
    TextStyle.STRONG: "strong",
    TextStyle.EMPHASIS: "em",
    TextStyle.STRIKE: "s",
    TextStyle.CODE: "code",
    TextStyle.SUBSCRIPT: "sub",
    TextStyle.SUPERSCRIPT: "sup",
}
_INDENT = "  "


class Copied(NamedTuple):
    """A selection in the formats of the clipboard.

    Attributes:
        text: Plain text: cells separated by tabs, list items with their bullets and numbers.
        html: HTML; empty if the selection has no formatting.
    """

    text: str
    html: str = ""


class SelectedBlock(NamedTuple):
    """The selected part of a block.

    Attributes:
        block: The block.
        lines: Selected runs of each line of the block (of each cell of a table); None if none is.
        is_from_start: Whether the selection begins before the block or at its beginning.
    """

    block: MarkdownBlock
    lines: tuple[Runs | None, ...]
    is_from_start: bool


class Selection(NamedTuple):
    """A range of a document's text, or cells of a table.

    Attributes:
        start: First position in the document.
        end: Position after the last one.
        columns: Selected columns of a table; None if text is selected.
    """

    start: int
    end: int
    columns: range | None = None


def select(
    lines: Sequence[tuple[int, Runs]], block: MarkdownBlock, selection: Selection, source: str
) -> SelectedBlock | None:
    """Return the selected part of a block; None if nothing of it is selected.

    Args:
        lines: Document position and runs of each line of the block.
        block: The block.
        selection: The selected range.
        source: Markdown of the answer, from which formulas are copied as LaTeX.
    """
    start, end, columns = selection
    num_columns = len(block.alignments) if isinstance(block, Table) else 1
    selected = tuple(
        tuple(_cut(position, runs, start, end, source))
        if start <= position + _length(runs)
        and position < end
        and (columns is None or number % num_columns in columns)
        else None
        for number, (position, runs) in enumerate(lines)
    )
    if all(line is None for line in selected):
        return None
    return SelectedBlock(block, selected, start <= lines[0][0])


def _length(runs: Runs) -> int:
    return sum(utf16_length(run.text) for run in runs)


def _cut(position: int, runs: Runs, start: int, end: int, source: str) -> Iterator[Run]:
    at = position
    for run in runs:
        last = at + utf16_length(run.text)
        if start < last and at < end:
            is_formula = run.style & TextStyle.MATH
            inner = utf16_slice(run.text, start - at, end - at)
            yield run._replace(text=source[run.start : run.end] if is_formula else inner)
        at = last


def copied(blocks: Sequence[SelectedBlock]) -> Copied:
    """Convert selected blocks to plain text and HTML."""
    # Words out of one item are no list.
    marks = len(blocks) > 1
    text = "\n".join(_text_of(selected, marks) for selected in blocks)
    return Copied(text, "".join(_Html(marks).write(blocks)))


def _text_of(selected: SelectedBlock, marks: bool) -> str:
    block = selected.block
    if isinstance(block, Table):
        rows = [
            [_plain(cell, " ") for cell in row if cell is not None]
            for row in _rows(block, selected.lines)
        ]
        return "\n".join("\t".join(row) for row in rows if row)
    text = "\n".join(_plain(line, "\n") for line in selected.lines if line is not None)
    depth = block.place.list_depth
    if not marks or not depth or isinstance(block, CodeBlock):
        return text
    indent = _INDENT * (depth - 1)
    begin = _INDENT
    if block.place.marker is not None:
        begin = f"{_sign(block.place.marker)} " if selected.is_from_start else ""
    return indent + begin + text.replace("\n", f"\n{indent}{_INDENT}")


def _plain(runs: Runs, line_break: str) -> str:
    return "".join(run.text for run in runs).replace(LINE_BREAK, line_break)


def _sign(marker: Marker) -> str:
    return f"{marker.number}{marker.delimiter}" if marker.ordered else "•"


class _Html:
    """Writes blocks as HTML with nested lists and quotations.

    Args:
        marks: Whether to write list and quotation elements around the blocks.
    """

    def __init__(self, marks: bool) -> None:
        self._marks = marks
        self._open: list[str] = []  # quotations, then for each level a list and its item

    def write(self, blocks: Sequence[SelectedBlock]) -> Iterator[str]:
        """Yield the HTML of the blocks in order, piece by piece."""
        for selected in blocks:
            if self._marks:
                yield from self._move_to(selected.block.place)
            yield self._block(selected)
        yield from self._leave(0)

    def _move_to(self, place: Place) -> Iterator[str]:
        """Close and open the lists and quotations between the last block and the next one."""
        num_quotes, name = place.quote_depth, _list_of(place.marker)
        if self._open.count("blockquote") != num_quotes:
            yield from self._leave(0)
            yield from self._enter(*["blockquote"] * num_quotes)
        yield from self._leave(num_quotes + 2 * place.list_depth)
        if place.marker is not None and place.list_depth == self._depth(num_quotes):
            yield from self._leave(len(self._open) - 1)
            yield from (
                self._enter("li") if self._open[-1] == name else self._leave(len(self._open) - 1)
            )
        while self._depth(num_quotes) < place.list_depth:
            yield from self._begin_list(name, place.marker)

    def _begin_list(self, name: str, marker: Marker | None) -> Iterator[str]:
        number = 1 if marker is None or not marker.ordered else marker.number
        self._open.append(name)
        yield f"<{name}>" if number == 1 else f'<{name} start="{number}">'
        yield from self._enter("li")

    def _depth(self, num_quotes: int) -> int:
        return (len(self._open) - num_quotes) // 2

    def _enter(self, *names: str) -> Iterator[str]:
        self._open += names
        yield from (f"<{name}>" for name in names)

    def _leave(self, num_kept: int) -> Iterator[str]:
        while len(self._open) > num_kept:
            yield f"</{self._open.pop()}>"

    def _block(self, selected: SelectedBlock) -> str:
        block, lines = selected.block, selected.lines
        if isinstance(block, Table):
            return _table(block, lines)
        if isinstance(block, CodeBlock):
            code = "\n".join(_plain(line, "\n") for line in lines if line is not None)
            return f"<pre><code>{escape(code)}</code></pre>"
        inner = "".join(_inline(line) for line in lines if line is not None)
        if not isinstance(block, Paragraph):
            return "<hr>"
        if block.level:
            return f"<h{block.level}>{inner}</h{block.level}>"
        return f"<p>{inner}</p>"


def _list_of(marker: Marker | None) -> str:
    return "ol" if marker is not None and marker.ordered else "ul"


def _table(block: Table, lines: Sequence[Runs | None]) -> str:
    rows = []
    for number, row in enumerate(_rows(block, lines)):
        name = "td" if number else "th"
        cells = [
            f"<{name}{_aligned(align)}>{_inline(cell)}</{name}>"
            for cell, align in zip(row, block.alignments, strict=True)
            if cell is not None
        ]
        if cells:
            rows.append(f"<tr>{''.join(cells)}</tr>")
    direction = ' dir="rtl"' if block.is_rtl else ""
    return f'<table border="1"{direction}>{"".join(rows)}</table>'


def _rows(block: Table, lines: Sequence[Runs | None]) -> Iterator[Sequence[Runs | None]]:
    """Yield the cells of each row in reading order (reversed in right-to-left tables)."""
    num_columns = len(block.alignments)
    for at in range(0, len(lines), num_columns):
        yield lines[at : at + num_columns][:: -1 if block.is_rtl else 1]


def _aligned(alignment: str) -> str:
    return f' style="text-align:{alignment}"' if alignment else ""


def _inline(runs: Runs) -> str:
    return "".join(_styled(run) for run in runs)


def _styled(run: Run) -> str:
    text = escape(run.text).replace(LINE_BREAK, "<br>")
    for style, tag in _TAGS.items():
        if run.style & style:
            text = f"<{tag}>{text}</{tag}>"
    is_link = run.href and not run.href.startswith((CITATION, UNKNOWN_CITATION))
    return f'<a href="{escape(run.href)}">{text}</a>' if is_link else text
