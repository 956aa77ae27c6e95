"""Source of EAGLE heads; see `ChainedSource`."""

from __future__ import annotations

from medusa_core.heads.eagle import EagleHead
from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.level_source import head_spec
from medusa_core.speculation.drafters.parallel_source import ParallelSource


def _make(head: EagleHead, budget: RowBudget) -> ChainedSource:
    """Make the source of a head that drafts token by token, or of one that drafts in one pass."""
    kind = ChainedSource if head.masked is None else ParallelSource
    return kind(head, budget.levels)


HINT = tr("Load an EAGLE head for this model, or choose another drafter.")
SPEC = head_spec(
    SourceInfo(
        name="eagle",
        label="EAGLE",
        badge="e",
        explanation="drafted by an EAGLE head, which goes on from the model's own states",
        colours=("teal",),
        line="dash-dot",
        is_numbered=True,
    ),
    EagleHead,
    _make,
    HINT,
    alone=DrafterChoice(
        "eagle",
        "EAGLE head",
        "The draft tokens of a head that goes on from the model's own states, token by token.",
    ),
)
