"""Medusa in one chain: the best guess of every head, one behind the other, no branches.

It takes the fewest rows, for devices on which every further row costs time.
"""

from __future__ import annotations

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.runtime.tree.tables import Accuracies
from medusa_core.speculation.drafters.drafter import (
    DrafterSpec,
    accuracies_of,
)
from medusa_core.speculation.drafters.medusa import (
    MedusaDrafter,
    heads_and_trees,
)
from medusa_core.speculation.drafters.sources.heads_source import SPEC as HEADS
from medusa_core.speculation.drafters.sources.heads_source import has_heads


def build_chain(target: Target, budget: RowBudget, knows_chance: bool = True) -> MedusaDrafter:
    """A drafter of one chain; see `MedusaDrafter`."""
    heads, trees = heads_and_trees(target)
    depth = min(heads.num_heads, budget.most - 1)
    shape = TreeShape.from_paths([(0,) * length for length in range(1, depth + 1)])
    return MedusaDrafter(heads, shape, trees.expected_length(shape) - 1, knows_chance)


def chain_accuracies(target: Target) -> Accuracies:
    """How often the best guess of each head is right."""
    return tuple(row[:1] for row in accuracies_of(target))


SPEC = DrafterSpec(
    DrafterChoice("medusa-chain", "Medusa, one chain", "Each head's best guess, without branches."),
    has_heads,
    build_chain,
    preference=12,
    sources=(HEADS.name,),
    accuracies=chain_accuracies,
    is_offered=False,
)
