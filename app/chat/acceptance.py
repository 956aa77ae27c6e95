"""How often heads, lookup and phrases were right: the same figure wherever it is shown."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from app.markdown.tokens import MARK_NAMES, marks_of
from medusa_core.messages import TokenSource

MEANING = (
    "Of the steps in which a head, the lookup or phrases (what the model often says) drafted, the "
    "share in which a token of theirs was accepted, in the last answer. Head k drafts the k-th "
    "token after the one decided; it counts only where all before it were right. A token that "
    "several guessed counts for each. Where all together draft, heads are asked as often as they "
    "bring more than their time; those of the built-in model always, as they are there to be "
    "watched."
)


class Rate(NamedTuple):
    """How often a head, the lookup or phrases were right.

    Attributes:
        mark: The head's number, 1-based; `LOOKUP` or `PHRASES`, of whatever depth.
        num_accepted: Steps in which a token of it was accepted.
        num_steps: Steps in which it drafted.
    """

    mark: int
    num_accepted: int = 0
    num_steps: int = 0

    @property
    def name(self) -> str:
        """Who it is, in words."""
        return MARK_NAMES.get(self.mark) or f"head {self.mark}"

    @property
    def share(self) -> float:
        """Of the steps in which it drafted those in which it was right; 0 before the first."""
        return self.num_accepted / self.num_steps if self.num_steps else 0.0


class AcceptanceTally:
    """Counts over the decoding steps of one answer."""

    def __init__(self) -> None:
        self._rates: dict[int, Rate] = {}

    def add(self, nodes: tuple[TokenSource, ...], accepted: tuple[TokenSource, ...]) -> None:
        """Count a step.

        Args:
            nodes: Where each node of its tree came from.
            accepted: Where each accepted token came from.
        """
        was_right = _credited(accepted)
        for mark in _credited(nodes):
            rate = self._rates.get(mark, Rate(mark))
            self._rates[mark] = Rate(
                mark, rate.num_accepted + (mark in was_right), rate.num_steps + 1
            )

    def rates(self) -> tuple[Rate, ...]:
        """All who drafted: the heads in order, then the lookup, then phrases."""
        return tuple(sorted(self._rates.values(), key=lambda rate: (rate.mark < 0, abs(rate.mark))))


@lru_cache(maxsize=2048)  # forms of trees come again and again
def _credited(sources: tuple[TokenSource, ...]) -> frozenset[int]:
    """All who drafted some of these; a node that several proposed credits each."""
    return frozenset(mark for source in sources for mark in marks_of(source))
