"""Source of MTP (multi-token prediction) layers; see `ChainedSource`."""

from __future__ import annotations

from medusa_core.heads.mtp import MtpHead
from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.level_source import head_spec

HINT = tr(
    "Load a Qwen3.5, GLM-4.5 or MiMo with its MTP layer and without other heads, or choose "
    "another drafter."
)
SPEC = head_spec(
    SourceInfo(
        name="mtp",
        label="MTP",
        badge="t",
        explanation="drafted by a layer that the model was trained with, to predict further tokens",
        colours=("teal",),
        line="dash-dot",
        is_numbered=True,
    ),
    MtpHead,
    lambda head, budget: ChainedSource(head, budget.levels),
    HINT,
    alone=DrafterChoice(
        "mtp",
        "MTP layer",
        "The draft tokens of the layer that the model was trained with, to predict further tokens.",
    ),
)
