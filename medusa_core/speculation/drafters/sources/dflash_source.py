"""A DFlash drafter as a source; see `BlockSource`."""

from __future__ import annotations

from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.speculation.drafters.block_source import block_spec

SPEC = block_spec(
    SourceInfo(
        name="dflash",
        label="DFlash",
        badge="k",
        explanation="drafted by a DFlash drafter, which fills a block of places in one pass",
        colours=("lime",),
        line="dash-dot",
        is_numbered=True,
        draws_block=True,
    ),
    DrafterChoice(
        "dflash",
        "DFlash drafter",
        "A drafter that fills a whole block of places in one pass.",
    ),
    hint=tr("Load a DFlash drafter for this model, or choose another drafter."),
)
