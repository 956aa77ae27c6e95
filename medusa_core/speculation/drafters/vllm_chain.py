"""Medusa as in vLLM: a chain of every head's most likely token.

Heads with a reduced vocabulary (`token_map`) draft the tokens that their columns map to. As in vLLM
the noise of sampling isn't applied: the text is exact, but fewer drafts are accepted than those of
`medusa` with chains.

Source: vLLM's `MedusaProposer` (vllm/v1/spec_decode/medusa.py), and its `Medusa` model.
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


def _build(target: Target, budget: RowBudget) -> MedusaDrafter:
    """Make a chain of as many heads as a budget has rows."""
    heads, trees = heads_and_trees(target)
    shape = TreeShape.chain(1 + min(heads.num_heads, budget.most - 1))
    return MedusaDrafter(heads, shape, trees.expected_length(shape) - 1, applies_noise=False)


def _accuracies(target: Target) -> Accuracies:
    """Accuracy of each head's best token."""
    return tuple(row[:1] for row in accuracies_of(target))


SPEC = DrafterSpec(
    DrafterChoice(
        "vllm",
        "Medusa as in vLLM",
        "Each head's best draft token, without branches and without regard to chance.",
    ),
    has_heads,
    _build,
    preference=13,
    sources=(HEADS.name,),
    accuracies=_accuracies,
    is_offered=False,
)
