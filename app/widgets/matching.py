"""Ranks entries of the palette by typed words. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the palette.

    Attributes:
        label: Its name.
        run: Its action.
        detail: A remark, such as its shortcut.
        kind: Its kind.
    """

    label: str
    run: Callable[[], object]
    detail: str = ""
    kind: str = ""


# Gets what was typed, and gives what is meant by it, the best first.
Provider = Callable[[str], Sequence[Entry]]


def rank(words: str, label: str) -> int | None:
    """Rank a label: 0 is the best match; None if a word isn't in it."""
    folded, total = label.casefold(), 0
    for word in words.casefold().split():
        place = folded.find(word)
        if place < 0:
            return None
        begins_word = place == 0 or not folded[place - 1].isalnum()
        total += place + (0 if begins_word else 100)
    return total


def matching(words: str, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries that contain all words, the best first; all entries without words."""
    ranked = [(rank(words, one.label), number, one) for number, one in enumerate(entries)]
    found = [(place, number, one) for place, number, one in ranked if place is not None]
    return tuple(one for _, _, one in sorted(found, key=lambda each: each[:2]))
