"""Divide documents into chunks, at headings, pages, paragraphs and lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from medusa_core.i18n import tr

SEPARATOR = " › "  # of headings
# 200 to 300 tokens of most languages.
_MOST_CHARS = 1000
_FEW_CHARS = 200
# An ideograph is about a token, other tokens have about four characters.
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u2e80-\u9fff\ua960-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CHARS_OF_WIDE = 3
# Where a text may be divided, the best first.
_BREAKS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"[.!?…][\"')\]]*\s|[。！？]", r"\s")))


class Section(NamedTuple):
    """A page of a document, or the text below a heading.

    Attributes:
        text: Its text, with its heading.
        place: Location for display, `p. 3` or `Heading › Sub`; empty to use line numbers.
        heading: Headings above it.
        first_line: Number of its first line, where `place` is empty.
        is_page: Whether it is a page, which is never joined with the next.
    """

    text: str
    place: str = ""
    heading: str = ""
    first_line: int = 1
    is_page: bool = False


class Chunk(NamedTuple):
    """A chunk of a document.

    Attributes:
        place: Location for display.
        heading: Headings above it.
        text: Its text.
    """

    place: str
    heading: str
    text: str


def divide(sections: Iterable[Section]) -> Iterator[Chunk]:
    """Divide sections into chunks; a short section and the next become one chunk."""
    waiting: Section | None = None
    for section in sections:
        if not section.text.strip():
            continue
        if waiting is not None and _length(waiting.text) + _length(section.text) <= _MOST_CHARS:
            # The text below a heading is followed by a heading below it.
            above = waiting.heading and waiting.heading + SEPARATOR
            place = section if section.heading.startswith(above) else waiting
            section = place._replace(
                text=f"{waiting.text}\n\n{section.text}", first_line=waiting.first_line
            )
        elif waiting is not None:
            yield from _pieces(waiting)
        waiting = section
        if section.is_page or _length(section.text) >= _FEW_CHARS:
            yield from _pieces(section)
            waiting = None
    if waiting is not None:
        yield from _pieces(waiting)


def _pieces(section: Section) -> Iterator[Chunk]:
    """Divide a section into pieces of about equal length."""
    text = section.text
    line = section.first_line
    begin = 0
    while begin < len(text):
        end = _end(text, begin)
        piece = text[begin:end]
        shown = piece.strip("\n").rstrip()
        if shown:
            first = line + (len(piece) - len(piece.lstrip("\n")))
            last = first + shown.count("\n")
            place = section.place or (
                tr("lines {0}–{1}", first, last) if last > first else tr("line {0}", first)
            )
            yield Chunk(place, section.heading, shown)
        line += piece.count("\n")
        begin = end


def _end(text: str, begin: int) -> int:
    """Return where the piece that begins at an offset ends."""
    window = text[begin : begin + 2 * _MOST_CHARS]
    length = _length(window)
    if length <= _MOST_CHARS:
        return min(len(text), begin + len(window))
    # The rest of a text that is hardly longer than a piece is halved.
    most = max(1, len(window) * _MOST_CHARS // length)
    if begin + len(window) >= len(text):
        num_pieces = -(-length // _MOST_CHARS)
        most = min(most, len(window) // num_pieces + _FEW_CHARS)
    for pattern in _BREAKS:
        ends = [match.end() for match in pattern.finditer(window, most // 2, most)]
        if ends:
            return begin + ends[-1]
    return begin + most


def _length(text: str) -> int:
    """Return the length of a text in characters, ideographs counted as several."""
    return len(text) if text.isascii() else len(text) + _CHARS_OF_WIDE * len(_WIDE.findall(text))
