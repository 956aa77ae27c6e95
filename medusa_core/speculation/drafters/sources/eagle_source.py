"""An EAGLE head as a source; see `ChainedSource`."""

from __future__ import annotations

from medusa_core.heads.eagle import EagleHead
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.parallel_source import ParallelSource
from medusa_core.speculation.drafters.source import SourceSpec


def _serves(target: Target) -> bool:
    return isinstance(target.heads, EagleHead)


def _make(target: Target, budget: RowBudget) -> ChainedSource:
    head = target.heads
    assert isinstance(head, EagleHead)  # as it serves
    if head.masked is not None:
        return ParallelSource(head, budget.levels)
    return ChainedSource(head, budget.levels)


HINT = "Load an EAGLE head for this model, or choose another drafter."
SPEC = SourceSpec(
    SourceInfo(
        name="eagle",
        label="EAGLE",
        badge="e",
        explanation="guessed by an EAGLE head, which goes on from the model's own states",
        colours=("teal",),
        line="dash-dot",
        is_numbered=True,
    ),
    serves=_serves,
    make=_make,
    hint=HINT,
    of_heads=True,
    alone=DrafterChoice(
        "eagle",
        "EAGLE head",
        "The guesses of a head that goes on from the model's own states, token by token.",
    ),
    preference=10,
)
