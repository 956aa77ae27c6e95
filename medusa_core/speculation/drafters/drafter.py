"""What a drafter is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.step import (
    Proposal,
    RowBudget,
)
from medusa_core.runtime.tree.tables import Accuracies
from medusa_core.speculation.drafters.observation import Observation

NUM_RANKS = 4  # guesses per head that are looked at even if the tree uses fewer


class Drafter(Protocol):
    """Drafts the next tokens as a tree."""

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer behind these tokens."""

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        """A tree under the decided token `root_id` with at most `max_rows` nodes, root included."""

    def observe(self, observation: Observation) -> None:
        """Learn what was decided; called after prefill and after every step."""

    def truncate(self, length: int) -> None:
        """Forget what was learned of tokens from `length` on."""


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
    """How often each rank of each head is right."""
    return () if target.trees is None else target.trees.head_accuracies


def no_ranks(_: Target) -> Accuracies:
    """Of guesses that have no ranks, nothing is known."""
    return ()


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """A registered drafter.

    Attributes:
        choice: Its name in settings, and what people read of it.
        serves: Can it draft for this target?
        build: Makes a drafter for one session, whose trees keep to a budget of rows.
        preference: Of the drafters that serve a target the one with the lowest is the default.
        sources: Names of the sources that it drafts from; empty where it drafts nothing.
        weighs_rows: Whether it knows in each step what rows are worth, and takes those that pay;
            else all its trees have as many rows as `accuracies` makes worth their time.
        accuracies: How often its guess of rank 0, 1, ... at depth 1, 2, ... is right; empty where
            its guesses have no ranks.
        hint: What to do where it can't draft.
        is_offered: People choose among those; the others are there for `bench` to compare with.
        is_raced: It is compared with the others on a model's first load, and may become the
            default; else whoever wants it chooses it.
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
        """Its name."""
        return self.choice.name

    def can_draft(self, target: Target) -> bool:
        """Can it draft for this target? One that decodes plainly takes no guesses."""
        takes_guesses = not target.runner.plain_why or not self.drafts
        return takes_guesses and self.serves(target)

    def hint_for(self, target: Target) -> str:
        """What to do where it can't draft for this target."""
        why = target.runner.plain_why
        return f"Choose the drafter 'none': {why}." if why else self.hint

    @property
    def drafts(self) -> bool:
        """Whether it ever guesses."""
        return self.choice.drafts
