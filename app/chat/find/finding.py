"""Finds words in texts, whatever their case and accents. No Qt."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from app.markdown.model import LINE_BREAK


class Folded(NamedTuple):
    """A text in which case and accents make no difference.

    Attributes:
        text: Its letters alone.
        places: Where each of them stands in the text, in UTF-16 units as Qt counts; one more for
            the end.
    """

    text: str
    places: list[int]


def folded(text: str) -> Folded:
    """A text without case and accents, and the way back."""
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
    """Where words stand in a text: first place and the one behind the last, without overlaps.

    Args:
        words: As they were typed; white space is any white space.
        text: A shown text; its ends of blocks and lines are spaces.
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
    """The same text with spaces for whatever separates words."""
    return text.translate({ord(char): " " for char in f"\n\t\u2029\xa0{LINE_BREAK}"})
