"""Colours of code, by pygments; positions and characters stay untouched."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol, cast

from app.markdown.style import Ink

# Above this, lines are coloured one by one: some lexers look ahead from everywhere to the end.
MAX_WHOLE_CHARS = 3_000
# Above this, a line is plain.
MAX_LINE_CHARS = 400


class Lexer(Protocol):
    """The one method of a pygments lexer that is used here."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Position, type and text of each token; the texts add up to the whole."""


class Stretch(NamedTuple):
    """So many characters of one ink."""

    length: int
    ink: Ink


Stretches = tuple[Stretch, ...]


def line_inks(lines: tuple[str, ...], language: str, *, is_open: bool) -> tuple[Stretches, ...]:
    """Inks of each line of code.

    Args:
        lines: Lines without line ends.
        language: Name of the language; unknown or empty gives plain ink.
        is_open: Whether more lines may follow: then each line is coloured by itself, which costs
            nothing for lines that were seen before, but can't see strings across lines.

    Returns:
        For each line, stretches that add up to its length.
    """
    if not language or not any(lines):
        return tuple(_plain(line) for line in lines)
    if is_open or sum(map(len, lines)) > MAX_WHOLE_CHARS:
        return tuple(
            _inks((line,), language)[0] if len(line) <= MAX_LINE_CHARS else _plain(line)
            for line in lines
        )
    return _inks(lines, language)


@lru_cache(maxsize=4096)
def _inks(lines: tuple[str, ...], language: str) -> tuple[Stretches, ...]:
    lexer = _lexer(language)
    if lexer is None:
        return tuple(_plain(line) for line in lines)
    text = "\n".join(lines)
    inks = [Ink.PLAIN] * len(text)
    # Unlike `get_tokens`, this neither strips nor adds characters.
    for at, kind, piece in lexer.get_tokens_unprocessed(text):
        ink = _ink_of(str(kind))
        if ink is not Ink.PLAIN:
            inks[at : at + len(piece)] = [ink] * len(piece)
    return _by_line(lines, inks)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    # Importing pygments takes 30 ms, and most conversations hold no code.
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        return cast("Lexer", find_lexer_class_by_name(language)())
    except ClassNotFound:
        return None


def _plain(line: str) -> Stretches:
    return (Stretch(len(line), Ink.PLAIN),) if line else ()


def _by_line(lines: tuple[str, ...], inks: list[Ink]) -> tuple[Stretches, ...]:
    result: list[Stretches] = []
    at = 0
    for line in lines:
        result.append(_stretches(inks[at : at + len(line)]))
        at += len(line) + 1
    return tuple(result)


def _stretches(inks: list[Ink]) -> Stretches:
    stretches: list[Stretch] = []
    for ink in inks:
        if stretches and stretches[-1].ink is ink:
            stretches[-1] = Stretch(stretches[-1].length + 1, ink)
        else:
            stretches.append(Stretch(1, ink))
    return tuple(stretches)


def _ink_of(kind: str) -> Ink:
    """Ink of a pygments token type such as `Token.Literal.String.Doc`."""
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
