"""Acceptance rates of draft sources."""

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
    """Acceptance rate of a draft source or of one of its heads.

    Attributes:
        mark: The source or head.
        name: Its display name.
        num_accepted: Steps in which a token of it was accepted.
        num_steps: Steps in which it drafted.
    """

    mark: Mark
    name: str
    num_accepted: int = 0
    num_steps: int = 0

    @property
    def share(self) -> float:
        """Steps with an accepted draft token ÷ steps with a draft token; 0 if there are none."""
        return self.num_accepted / self.num_steps if self.num_steps else 0.0


class AcceptanceTally:
    """Counts acceptance over the decoding steps of an answer.

    Args:
        legend: Names and order of draft sources.
    """

    def __init__(self, legend: Legend) -> None:
        self._legend = legend
        self._rates: dict[Mark, AcceptanceRate] = {}

    def add(self, nodes: tuple[TokenSource, ...], accepted: tuple[TokenSource, ...]) -> None:
        """Count a step.

        Args:
            nodes: Draft source of each tree node.
            accepted: Draft source of each accepted token.
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
        """Return the rates of all sources that drafted, in the engine's order, heads by depth."""
        return tuple(sorted(self._rates.values(), key=lambda rate: self._legend.place(rate.mark)))


@lru_cache(maxsize=2048)  # forms of trees come again and again
def _credited(sources: tuple[TokenSource, ...]) -> frozenset[Mark]:
    """Return the sources of some nodes; a node of several sources credits each."""
    return frozenset(mark for source in sources for mark in marks_of(source))
