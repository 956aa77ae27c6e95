"""Syntax highlighting by pygments, which doesn't change the text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol, cast

from app.theme.text_style import Ink

# Above one of these, lines are coloured one by one: some lexers look ahead from everywhere to the
# end, and some begin anew at every line.
MAX_WHOLE_CHARS = 3_000
MAX_WHOLE_LINES = 150
# Above this, a line is plain.
MAX_LINE_CHARS = 400
# CPU time of a call above which code is plain, and such calls after which a language is.
MOST_S = 0.05
MOST_SLOW_CALLS = 2
# Lexers that may take minutes for a single token, so that no clock is read between two.
_UNBOUNDED = frozenset({"TNTLexer"})


class Lexer(Protocol):
    """The used part of a pygments lexer."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield position, type and text of each token."""


class SyntaxRun(NamedTuple):
    """Consecutive characters of the same syntax class: their number and the class."""

    length: int
    ink: Ink


SyntaxRuns = tuple[SyntaxRun, ...]


class Highlighter:
    """Highlights code of one language while that is fast enough.

    Args:
        lexer: Its lexer.

    Attributes:
        num_slow: Calls that took too long.
    """

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self.num_slow = 0

    def inks(self, text: str) -> list[Ink]:
        """Return the syntax class of each character; plain after a timeout."""
        inks = [Ink.PLAIN] * len(text)
        if self.num_slow >= MOST_SLOW_CALLS:
            return inks
        # Not the time of day: other programs may have the processor.
        end = time.thread_time() + MOST_S
        # Unlike `get_tokens`, this neither strips nor adds characters.
        for at, kind, piece in self._lexer.get_tokens_unprocessed(text):
            ink = _ink_of(str(kind))
            if ink is not Ink.PLAIN:
                inks[at : at + len(piece)] = [ink] * len(piece)
            if time.thread_time() > end:
                self.num_slow += 1
                return [Ink.PLAIN] * len(text)
        return inks


def line_inks(lines: tuple[str, ...], language: str, *, is_open: bool) -> tuple[SyntaxRuns, ...]:
    """Return the inks of each line of code.

    Args:
        lines: Lines without line ends.
        language: Name of the language; unknown or empty for plain ink.
        is_open: Whether more lines may follow. Then each line is highlighted by itself, which is
            cached but doesn't recognise strings across lines.

    Returns:
        For each line, stretches that cover it.
    """
    if not language or not any(line.strip() for line in lines):
        return tuple(_plain(line) for line in lines)
    # Some lexers take long for many empty lines: one of a run stands for it.
    is_lexed = [bool(line.strip() or (n and lines[n - 1].strip())) for n, line in enumerate(lines)]
    lexed = tuple(line for line, is_one in zip(lines, is_lexed, strict=True) if is_one)
    found = iter(_inks_of(lexed, language, is_open=is_open))
    return tuple(
        next(found) if is_one else _plain(line)
        for line, is_one in zip(lines, is_lexed, strict=True)
    )


def _inks_of(lines: tuple[str, ...], language: str, *, is_open: bool) -> tuple[SyntaxRuns, ...]:
    is_whole = (
        not is_open
        and sum(map(len, lines)) <= MAX_WHOLE_CHARS
        and len(lines) <= MAX_WHOLE_LINES
        and max(map(len, lines)) <= MAX_LINE_CHARS
    )
    if is_whole:
        return _block_inks(lines, language)
    return tuple(
        _line_inks(line, language) if len(line) <= MAX_LINE_CHARS else _plain(line)
        for line in lines
    )


@lru_cache(maxsize=4096)
def _line_inks(line: str, language: str) -> SyntaxRuns:
    return _inks((line,), language)[0]


@lru_cache(maxsize=128)  # of up to 3,000 characters each
def _block_inks(lines: tuple[str, ...], language: str) -> tuple[SyntaxRuns, ...]:
    return _inks(lines, language)


def _inks(lines: tuple[str, ...], language: str) -> tuple[SyntaxRuns, ...]:
    highlighter = _highlighter(language)
    if highlighter is None:
        return tuple(_plain(line) for line in lines)
    return _by_line(lines, highlighter.inks("\n".join(lines)))


@lru_cache(maxsize=64)
def _highlighter(language: str) -> Highlighter | None:
    # Importing pygments takes 30 ms, and most conversations hold no code.
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        kind = find_lexer_class_by_name(language)
    except ClassNotFound:
        return None
    return None if kind.__name__ in _UNBOUNDED else Highlighter(cast("Lexer", kind()))


def _plain(line: str) -> SyntaxRuns:
    return (SyntaxRun(len(line), Ink.PLAIN),) if line else ()


def _by_line(lines: tuple[str, ...], inks: list[Ink]) -> tuple[SyntaxRuns, ...]:
    result: list[SyntaxRuns] = []
    at = 0
    for line in lines:
        result.append(_stretches(inks[at : at + len(line)]))
        at += len(line) + 1
    return tuple(result)


def _stretches(inks: list[Ink]) -> SyntaxRuns:
    stretches: list[SyntaxRun] = []
    for ink in inks:
        if stretches and stretches[-1].ink is ink:
            stretches[-1] = SyntaxRun(stretches[-1].length + 1, ink)
        else:
            stretches.append(SyntaxRun(1, ink))
    return tuple(stretches)


def _ink_of(kind: str) -> Ink:
    """Return the ink of a pygments token type such as `Token.Literal.String.Doc`."""
    for name, ink in (
        ("Token.Keyword", Ink.KEYWORD),
        ("Token.Operator.Word", Ink.KEYWORD),
        ("Token.Literal.String", Ink.STRING),
        ("Token.Literal.Number", Ink.NUMBER),
        ("Token.Comment", Ink.COMMENT),
        ("Token.Name.Function", Ink.NAME),
        ("Token.Name.Class", Ink.NAME),
        ("Token.Name.Tag", Ink.NAME),
        ("Token.Name.Decorator", Ink.NAME),
    ):
        if kind.startswith(name):
            return ink
    return Ink.PLAIN
