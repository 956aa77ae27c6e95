"""Flattens nested block tokens; each block stores its nesting as a `Place`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from app.markdown.block import ORIGINS
from app.markdown.citations import with_citations
from app.markdown.inline import runs_from_tokens
from app.markdown.model import (
    CodeBlock,
    MarkdownBlock,
    Marker,
    Paragraph,
    Place,
    Runs,
    Table,
    ThematicBreak,
)
from app.markdown.source_map import one_to_one_runs
from app.widgets.qt_text import with_visible_controls


@dataclass(slots=True)
class _List:
    """Open list during the walk."""

    marker: Marker


class Flattener:
    """Converts block tokens to flat blocks.

    Args:
        inline_tokens: Parses inline text.
        origins: Source position of each character of the parsed text.
        passages: Numbers of the passages that the text may cite; without any, it cites none.

    Attributes:
        blocks: Emitted blocks.
    """

    def __init__(
        self,
        inline_tokens: Callable[[str], Sequence[Token]],
        origins: Sequence[int],
        passages: Collection[int] = (),
    ) -> None:
        self._passages = passages
        self.blocks: list[MarkdownBlock] = []
        self._inline_tokens = inline_tokens
        self._origins = origins
        self._lists: list[_List] = []
        self._quote_depth = 0
        self._marker: Marker | None = None
        self._level = 0
        self._alignments: list[str] = []
        self._rows: list[list[Runs]] = []

    def take(self, token: Token) -> None:
        """Process the next block token."""
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._open_list(token)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._open_item(token)
            case "list_item_close":
                self._emit_waiting_marker()
            case "blockquote_open":
                self._emit_waiting_marker()
                self._quote_depth += 1
            case "blockquote_close":
                self._quote_depth -= 1
            case "heading_open":
                self._level = int(token.tag[1])
            case "heading_close":
                self._level = 0
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self._emit_waiting_marker()
                self.blocks.append(ThematicBreak(self._place()))
            case _:
                self._process_text_token(token)

    def _process_text_token(self, token: Token) -> None:
        """Process a token of a table, or the inline text of a block."""
        match token.type:
            case "table_open":
                self._emit_waiting_marker()
                self._alignments, self._rows = [], []
            case "table_close":
                self._table()
            case "tr_open":
                self._rows.append([])
            case "th_open":
                style = str(token.attrs.get("style", ""))
                self._alignments.append(style.removeprefix("text-align:"))
            case "inline":
                self._inline(token)

    def _open_list(self, token: Token) -> None:
        self._emit_waiting_marker()
        ordered = token.type == "ordered_list_open"
        number = int(token.attrs.get("start", 1)) if ordered else 0
        self._lists.append(_List(Marker(ordered, number, token.markup)))

    def _open_item(self, token: Token) -> None:
        current = self._lists[-1]
        self._marker = current.marker
        if current.marker.ordered:
            current.marker = current.marker._replace(number=current.marker.number + 1)

    def _place(self) -> Place:
        marker, self._marker = self._marker, None
        return Place(len(self._lists), self._quote_depth, marker)

    def _emit_waiting_marker(self) -> None:
        """Emit a line for the marker if its item doesn't begin with text."""
        if self._marker is not None:
            self.blocks.append(Paragraph(self._place(), ()))

    def _inline(self, token: Token) -> None:
        inner = token.meta[ORIGINS][: len(token.content)]
        tokens = self._inline_tokens(token.content)
        runs = runs_from_tokens(tokens, token.content, self._to_source(inner))
        if self._passages:
            runs = with_citations(runs, self._passages)
        if self._rows:
            self._rows[-1].append(runs)
        else:
            self.blocks.append(Paragraph(self._place(), runs, self._level))

    def _code(self, token: Token) -> None:
        self._emit_waiting_marker()
        origins = self._to_source(token.meta[ORIGINS])
        lines: list[Runs] = []
        first = 0
        code = with_visible_controls(token.content.removesuffix("\n"))
        for line in code.split("\n"):
            end = first + len(line)
            lines.append(tuple(one_to_one_runs(line, origins[first:end])))
            first = end + 1
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        self.blocks.append(CodeBlock(self._place(), tuple(lines), language, _is_unclosed(token)))

    def _table(self) -> None:
        rows = tuple(tuple(row) for row in self._rows)
        table = Table(self._place(), tuple(self._alignments), rows, _is_rtl(rows))
        self.blocks.append(table)
        self._rows = []

    def _to_source(self, inner: Sequence[int]) -> Sequence[int]:
        """Convert positions in the parsed text to source positions."""
        if isinstance(self._origins, range) and isinstance(inner, range):
            return range(self._origins.start + inner.start, self._origins.start + inner.stop)
        return [self._origins[i] for i in inner]


def _is_rtl(rows: Sequence[Sequence[Runs]]) -> bool:
    """Whether the first letter of a table is right-to-left."""
    for row in rows:
        for char in (char for cell in row for run in cell for char in run.text):
            direction = unicodedata.bidirectional(char)
            if direction in ("L", "R", "AL"):
                return direction != "L"
    return False


def _is_unclosed(token: Token) -> bool:
    """Whether more lines may join this code: it is indented, or its closing fence is missing."""
    if token.type == "code_block" or token.map is None:
        return True
    num_code_lines = len(token.content.removesuffix("\n").split("\n")) if token.content else 0
    return token.map[1] - token.map[0] < num_code_lines + 2
