"""How often each source of drafts was right: the same figure wherever it is shown."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.legend import (
    Legend,
    Mark,
    marks_of,
)
from medusa_core.messages import TokenSource

MEANING = QT_TRANSLATE_NOOP(
    "Chat",
    "Acceptance rate in the last answer: steps with an accepted draft token ÷ steps with a "
    "draft token, by source. Head k drafts the k-th next token; it counts only if all before "
    "it were accepted. A token that several sources drafted counts for each.",
)


class AcceptanceRate(NamedTuple):
    """How often one source, or one head of it, was right.

    Attributes:
        mark: Whose rate it is.
        name: That in words.
        num_accepted: Steps in which a token of it was accepted.
        num_steps: Steps in which it drafted.
    """

    mark: Mark
    name: str
    num_accepted: int = 0
    num_steps: int = 0

    @property
    def share(self) -> float:
        """Of the steps in which it drafted those in which it was right; 0 before the first."""
        return self.num_accepted / self.num_steps if self.num_steps else 0.0


class AcceptanceTally:
    """Counts over the decoding steps of one answer.

    Args:
        legend: Says who drafts.
    """

    def __init__(self, legend: Legend) -> None:
        self._legend = legend
        self._rates: dict[Mark, AcceptanceRate] = {}

    def add(self, nodes: tuple[TokenSource, ...], accepted: tuple[TokenSource, ...]) -> None:
        """Count a step.

        Args:
            nodes: Where each node of its tree came from.
            accepted: Where each accepted token came from.
        """
        kind, name = self._legend.kind, self._legend.name
        was_right = {kind(mark) for mark in _credited(accepted)}
        for mark in {kind(mark) for mark in _credited(nodes)}:
            rate = self._rates.get(mark, AcceptanceRate(mark, name(mark)))
            more = mark in was_right
            self._rates[mark] = AcceptanceRate(
                mark, rate.name, rate.num_accepted + more, rate.num_steps + 1
            )

    def rates(self) -> tuple[AcceptanceRate, ...]:
        """All who drafted, in the engine's order; heads by their number."""
        return tuple(sorted(self._rates.values(), key=lambda rate: self._legend.place(rate.mark)))


@lru_cache(maxsize=2048)  # forms of trees come again and again
def _credited(sources: tuple[TokenSource, ...]) -> frozenset[Mark]:
    """All who drafted some of these; a node that several proposed credits each."""
    return frozenset(mark for source in sources for mark in marks_of(source))
