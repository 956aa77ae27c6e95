"""Interface and registry entry of drafters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.step import (
    Proposal,
    RowBudget,
)
from medusa_core.runtime.tree.tables import Accuracies
from medusa_core.speculation.drafters.observation import Observation

NUM_RANKS = 4  # top tokens per head that are counted even if the tree uses fewer


class Drafter(Protocol):
    """Drafts the next tokens as a tree."""

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer after these tokens."""

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        """Draft a tree of at most `max_rows` nodes whose root is the decided token `root_id`."""

    def observe(self, observation: Observation) -> None:
        """Receive the decided tokens, after prefill and after every step."""

    def truncate(self, length: int) -> None:
        """Drop state of the tokens from `length` on."""


@runtime_checkable
class RecordsOffers(Protocol):
    """A drafter that chooses among candidates, and can record them for a trace."""

    def record_offers(self) -> None:
        """Fill `Proposal.offers` from now on."""


@runtime_checkable
class ScalesCosts(Protocol):
    """A drafter that compares drafts with their costs, which may change during an answer."""

    def scale_costs(self, factor: float) -> None:
        """Multiply the budget's costs of rows and levels by a factor from now on."""


def accuracies_of(target: Target) -> Accuracies:
    """Accuracy of each rank of each head."""
    return () if target.trees is None else target.trees.head_accuracies


def no_ranks(_: Target) -> Accuracies:
    """No accuracies, for drafters whose tokens have no ranks."""
    return ()


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """A registered drafter.

    Attributes:
        choice: Its name in settings, and its texts for users.
        serves: Returns whether it can draft for a target.
        build: Makes a drafter for one session, with a budget for its trees.
        preference: The drafter with the lowest one of those that serve a target is the default.
        sources: Names of its sources; empty if it drafts nothing.
        weighs_rows: It compares drafts with the costs of rows in each step; else all its trees have
            the number of rows that `accuracies` makes profitable.
        accuracies: Accuracy of its drafts of rank 0, 1, ... at depth 1, 2, ...; empty if they have
            no ranks.
        hint: What users can do if it can't draft.
        is_offered: Users can choose it; other drafters are compared by `bench` only.
        is_raced: It takes part in the race after a model's first load, and may become the default.
    """

    choice: DrafterChoice
    serves: Callable[[Target], bool]
    build: Callable[[Target, RowBudget], Drafter]
    preference: int
    sources: tuple[str, ...] = ()
    weighs_rows: bool = False
    accuracies: Callable[[Target], Accuracies] = no_ranks
    hint: str = "Load Medusa heads for this model, or choose the drafter 'none'."
    is_offered: bool = True
    is_raced: bool = True

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.choice.name

    def can_draft(self, target: Target) -> bool:
        """Whether it can draft for a target; some runners can only decode plainly."""
        can_verify = not target.runner.plain_why or not self.drafts
        return can_verify and self.serves(target)

    def hint_for(self, target: Target) -> str:
        """What users can do if it can't draft for a target."""
        why = target.runner.plain_why
        return tr("Choose the drafter 'none': {0}.", why) if why else self.hint

    @property
    def drafts(self) -> bool:
        """Whether it has sources; the drafter `none` has none."""
        return self.choice.drafts
