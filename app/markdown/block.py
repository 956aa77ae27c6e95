"""Block parser with source positions, on top of markdown-it's rules.

Block rules copy their content out of the source line by line (`getLines`, or a slice of one line
for headings and table rows). The state notes, for every token with content, where that content was
cut from; `meta["origins"]` then holds one position in the parsed text for each character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import MD_TRIM_CHARS
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock, paragraph, table
from markdown_it.token import Token
from markdown_it.utils import EnvType

from app.markdown.bounds import TABLE_CELLS, TABLE_COLUMNS

ORIGINS = "origins"
LINE_STARTS = "line_starts"

# Levels of nesting: a quotation is one, a list with its item two.
_MAX_DEPTH = 20
_CODE_TOKENS = ("fence", "code_block")
_CELLS = ("th_open", "td_open")


class WatchedBlockState(StateBlock):
    """Block state that records the source of each token's content."""

    def __init__(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> None:
        super().__init__(src, md, env, tokens)
        self._lines: Sequence[int] = range(0)
        self._row: list[Sequence[int]] = []

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:
        text = super().getLines(begin, end, indent, keepLastLF)
        self._lines = self._origins_of_lines(text, begin)
        last = self.tokens[-1] if self.tokens else None
        # Code rules push their token first and then fetch its lines; all others do it afterwards.
        if last is not None and last.type in _CODE_TOKENS:
            last.meta.setdefault(ORIGINS, self._lines)
        return text

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        opener = self.tokens[-1] if self.tokens else None
        token = super().push(ttype, tag, nesting)
        if ttype == "inline" and opener is not None:
            token.meta[ORIGINS] = self._origins_inside(opener)
        elif ttype == "tr_open":
            self._row = []
        return token

    def _origins_of_lines(self, text: str, begin: int) -> Sequence[int]:
        """Return the positions of whole lines; spaces for a part of a tab have the tab's."""
        start = self.bMarks[begin]
        if self.src.startswith(text, start):
            return range(start, start + len(text))
        origins: list[int] = []
        for line, piece in enumerate(text.split("\n"), begin):
            # Every piece is the end of its line, but for spaces left over from a tab before it.
            end = self.eMarks[min(line, len(self.eMarks) - 1)]
            first, num_left_over = end - len(piece), 0
            while not self.src.startswith(piece[num_left_over:], first + num_left_over):
                num_left_over += 1
            first += num_left_over
            origins.extend([first - 1] * num_left_over)
            origins.extend(range(first, end + 1))
        return origins[: len(text)]

    def _origins_inside(self, opener: Token) -> Sequence[int]:
        """Return the positions of the inline token after `opener`."""
        if opener.type in _CELLS:
            return self._origins_of_cell()
        if opener.type == "heading_open" and opener.markup.startswith("#"):
            line = opener.map[0] if opener.map else 0
            start = self.bMarks[line] + self.tShift[line] + len(opener.markup)
            return _trimmed(self.src, range(start, self.eMarks[line]))
        return _trimmed(self.src, self._lines)

    def _origins_of_cell(self) -> Sequence[int]:
        """Return the positions of the next cell of the current row."""
        row = next(token for token in reversed(self.tokens) if token.type == "tr_open")
        index = sum(token.type in _CELLS for token in _after(self.tokens, row)) - 1
        line = row.map[0] if row.map else 0
        if index == 0:
            start = self.bMarks[line] + self.tShift[line]
            self._row = _split_cells(self.src, start, self.eMarks[line])
        return self._row[index] if index < len(self._row) else ()


class WatchedBlockParser(ParserBlock):
    """Block parser whose content tokens carry the positions of their characters."""

    def __init__(self) -> None:
        super().__init__()
        self.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:
        """Parse lines; if quotations and lists are nested too deeply, only as paragraphs."""
        if state.level < _MAX_DEPTH:
            super().tokenize(state, startLine, endLine)
            return
        # markdown-it itself would leave out what stands there.
        line = startLine
        while (line := state.skipEmptyLines(line)) < endLine:
            if state.sCount[line] < state.blkIndent:
                break
            paragraph(state, line, endLine, False)
            line = state.line
        state.line = line

    def parse(
        self, src: str, md: MarkdownIt, env: EnvType, outTokens: list[Token]
    ) -> list[Token] | None:
        """Parse a text to block tokens; stores the starts of its lines in `env`."""
        state = WatchedBlockState(src, md, env, outTokens)
        env[LINE_STARTS] = tuple(state.bMarks)
        self.tokenize(state, state.line, state.lineMax)
        return state.tokens


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table of limited width and length; the rest becomes a paragraph."""
    if start + 1 >= end:
        return False
    rule = state.src[state.bMarks[start + 1] : state.eMarks[start + 1]]
    num_columns = rule.strip(" \t|").count("|") + 1
    if num_columns > TABLE_COLUMNS:
        return False
    return table(state, start, min(end, start + 2 + TABLE_CELLS // num_columns), silent)


def _after(tokens: list[Token], opener: Token) -> list[Token]:
    index = len(tokens) - 1
    while tokens[index] is not opener:
        index -= 1
    return tokens[index + 1 :]


def _trimmed(src: str, origins: Sequence[int]) -> Sequence[int]:
    """Strip white space, along with its positions."""
    first, last = 0, len(origins)
    while first < last and src[origins[first]] in MD_TRIM_CHARS:
        first += 1
    while last > first and src[origins[last - 1]] in MD_TRIM_CHARS:
        last -= 1
    return origins[first:last]


def _split_cells(src: str, start: int, end: int) -> list[Sequence[int]]:
    """Return the positions of each cell of the table row `src[start:end]`."""
    row = _trimmed(src, range(start, end))
    cells: list[list[int]] = [[]]
    is_escaped = False
    for at in row:
        if src[at] == "|" and not is_escaped:
            cells.append([])
        elif src[at] == "|":
            # The backslash that keeps a bar inside its cell is not part of the cell.
            cells[-1][-1] = at
        else:
            cells[-1].append(at)
        is_escaped = src[at] == "\\"
    if not cells[0]:
        cells.pop(0)
    if cells and not cells[-1]:
        cells.pop()
    return [_trimmed(src, cell) for cell in cells]
