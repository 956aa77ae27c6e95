"""Case- and accent-insensitive text search. No Qt."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from app.markdown.model import LINE_BREAK


class Folded(NamedTuple):
    """Case-folded text without accents, with original positions.

    Attributes:
        text: The folded text.
        places: Original position of each character and of the end, in UTF-16 units as Qt counts.
    """

    text: str
    places: list[int]


def folded(text: str) -> Folded:
    """Fold case and remove accents, keeping original positions."""
    if text.isascii():
        return Folded(text.lower(), list(range(len(text) + 1)))
    letters: list[str] = []
    places: list[int] = []
    at = 0
    for char in text:
        for letter in unicodedata.normalize("NFKD", char.casefold()):
            if not unicodedata.combining(letter):
                letters.append(letter)
                places.append(at)
        at += 2 if ord(char) > 0xFFFF else 1
    places.append(at)
    return Folded("".join(letters), places)


def find_all(words: str, text: str) -> list[tuple[int, int]]:
    """Return start and end of all matches of a search text, without overlaps.

    Args:
        words: Search text; white space matches any white space.
        text: Displayed text; ends of blocks and lines count as spaces.
    """
    wanted = _spaced(folded(words).text)
    if not wanted.strip():
        return []
    inside = folded(text)
    searched = _spaced(inside.text)
    found: list[tuple[int, int]] = []
    at = searched.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        # Accents that follow the last letter belong to it.
        found.append((inside.places[at], inside.places[end]))
        at = searched.find(wanted, end)
    return found


def _spaced(text: str) -> str:
    """Replace all separators of words with spaces."""
    return text.translate({ord(char): " " for char in f"\n\t\u2029\xa0{LINE_BREAK}"})
