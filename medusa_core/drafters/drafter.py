"""What a drafter is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

from torch import Tensor

from medusa_core import drafters
from medusa_core.registry import Registry
from medusa_core.target import Target
from medusa_core.tree.presets import Accuracies
from medusa_core.types import Chance, Proposal, RowBudget

NUM_RANKS = 4  # guesses per head that are looked at even if the tree uses fewer


class Observation(NamedTuple):
    """What a drafter learns from a step, or from prefill.

    Attributes:
        token_ids: The tokens decided, the next root last.
        states: The target's final hidden states. [n, hidden]
        row: Which of them is the one before the next root.
        chance: What the rule will add to the target's scores behind that root, if anything.
    """

    token_ids: Sequence[int]
    states: Tensor
    row: int = -1
    chance: Chance | None = None

    @property
    def hidden(self) -> Tensor:
        """The state before the next root. [hidden]"""
        return self.states[self.row]


class Drafter(Protocol):
    """Guesses how the text goes on."""

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer behind these tokens."""

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        """A tree under the decided token `root_id` with at most `max_rows` nodes, root included."""

    def observe(self, observation: Observation) -> None:
        """Learn what was decided; called after prefill and after every step."""

    def truncate(self, length: int) -> None:
        """Forget what was learned of tokens from `length` on."""


def accuracies_of(target: Target) -> Accuracies:
    """How often each rank of each head is right."""
    return () if target.trees is None else target.trees.head_accuracies


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """A registered drafter.

    Attributes:
        name: Its name in settings.
        serves: Can it draft for this target?
        build: Makes a drafter for one session, whose trees keep to a budget of rows.
        drafts: Whether it ever does.
        weighs_rows: Whether it knows in each step what rows are worth, and takes those that pay.
        accuracies: Where it doesn't: how often its guess of rank 0, 1, ... at depth 1, 2, ... is
            right; by this the row count of all its trees is chosen.
        hint: What to do where it can't draft.
    """

    name: str
    serves: Callable[[Target], bool]
    build: Callable[[Target, RowBudget], Drafter]
    drafts: bool = True
    weighs_rows: bool = False
    accuracies: Callable[[Target], Accuracies] = accuracies_of
    hint: str = "Load Medusa heads for this model, or choose the drafter 'none'."


@cache
def drafter_registry() -> Registry[DrafterSpec]:
    """All drafters."""
    return Registry(drafters, "drafter", DrafterSpec)
