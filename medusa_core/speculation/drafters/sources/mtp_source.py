"""A layer for multi-token prediction as a source; see `ChainedSource`."""

from __future__ import annotations

from medusa_core.heads.mtp import MtpHead
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.source import SourceSpec


def _serves(target: Target) -> bool:
    return isinstance(target.heads, MtpHead)


def _make(target: Target, budget: RowBudget) -> ChainedSource:
    head = target.heads
    assert isinstance(head, MtpHead)  # as it serves
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
    make=_make,
    hint=HINT,
    of_heads=True,
    alone=DrafterChoice(
        "mtp",
        "MTP layer",
        "The guesses of the layer that the model was trained with, to predict further tokens.",
    ),
    preference=10,
)
