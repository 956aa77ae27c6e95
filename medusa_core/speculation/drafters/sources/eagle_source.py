"""An EAGLE head as a source; see `ChainedSource`."""

from __future__ import annotations

from medusa_core.errors import RequestError
from medusa_core.heads.eagle import EagleHead
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.parallel_source import ParallelSource
from medusa_core.speculation.drafters.source import SourceSpec


def eagle_head(target: Target) -> EagleHead | None:
    """The EAGLE head of a target; None where it has none."""
    return target.heads if isinstance(target.heads, EagleHead) else None


def _serves(target: Target) -> bool:
    return eagle_head(target) is not None


def _build(target: Target, budget: RowBudget) -> ChainedSource:
    head = eagle_head(target)
    if head is None:
        raise RequestError(f"{target.name} has no EAGLE head.", HINT)
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
    build=_build,
    hint=HINT,
    of_heads=True,
    alone=DrafterChoice(
        "eagle",
        "EAGLE head",
        "The guesses of a head that goes on from the model's own states, token by token.",
    ),
    preference=10,
)
