"""A layer for multi-token prediction as a source; see `ChainedSource`."""

from __future__ import annotations

from medusa_core.errors import RequestError
from medusa_core.heads.mtp import MtpHead
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.source import SourceSpec


def mtp_head(target: Target) -> MtpHead | None:
    """The layer for multi-token prediction of a target; None where it has none."""
    return target.heads if isinstance(target.heads, MtpHead) else None


def _serves(target: Target) -> bool:
    return mtp_head(target) is not None


def _build(target: Target, budget: RowBudget) -> ChainedSource:
    head = mtp_head(target)
    if head is None:
        raise RequestError(f"{target.name} has no layer for multi-token prediction.", HINT)
    return ChainedSource(head, budget.levels)


HINT = (
    "Load a Qwen3.5, GLM-4.5 or MiMo with its MTP layer and without other heads, or choose another "
    "drafter."
)
SPEC = SourceSpec(
    SourceInfo(
        name="mtp",
        label="MTP",
        badge="t",
        explanation="guessed by a layer that the model was trained with, to predict further tokens",
        colours=("teal",),
        line="dash-dot",
        is_numbered=True,
    ),
    serves=_serves,
    build=_build,
    hint=HINT,
    of_heads=True,
    alone=DrafterChoice(
        "mtp",
        "MTP layer",
        "The guesses of the layer that the model was trained with, to predict further tokens.",
    ),
    preference=10,
)
