"""Which entries a few typed letters mean. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be chosen in the palette.

    Attributes:
        label: What it is called.
        run: What choosing it does.
        detail: A word about it, such as its keys.
        kind: What sort of thing it is.
    """

    label: str
    run: Callable[[], object]
    detail: str = ""
    kind: str = ""


# Gets what was typed, and gives what is meant by it, the best first.
Provider = Callable[[str], Sequence[Entry]]


def rank(words: str, label: str) -> int | None:
    """How well a label matches: 0 is best; None if a word isn't in it."""
    folded, total = label.casefold(), 0
    for word in words.casefold().split():
        place = folded.find(word)
        if place < 0:
            return None
        begins_word = place == 0 or not folded[place - 1].isalnum()
        total += place + (0 if begins_word else 100)
    return total


def matching(words: str, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries that hold all words, the best first; all of them for no words."""
    ranked = [(rank(words, one.label), number, one) for number, one in enumerate(entries)]
    found = [(place, number, one) for place, number, one in ranked if place is not None]
    return tuple(one for _, _, one in sorted(found, key=lambda each: each[:2]))
