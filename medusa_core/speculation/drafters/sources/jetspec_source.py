"""A JetSpec drafter as a source; see `BlockSource`."""

from __future__ import annotations

from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.speculation.drafters.block_source import block_spec

SPEC = block_spec(
    SourceInfo(
        name="jetspec",
        label="JetSpec",
        badge="j",
        explanation="drafted by a JetSpec drafter: a block in one pass, read from left to right",
        colours=("lime",),
        line="dash-dot",
        is_numbered=True,
        draws_block=True,
    ),
    DrafterChoice(
        "jetspec",
        "JetSpec drafter",
        "A drafter that fills a block of places in one pass, read from left to right.",
    ),
    hint=tr("Load a JetSpec drafter for this model, or choose another drafter."),
)
