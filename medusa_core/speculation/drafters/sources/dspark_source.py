"""A DSpark drafter as a source; see `BlockSource`."""

from __future__ import annotations

from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.speculation.drafters.block_source import block_spec

SPEC = block_spec(
    SourceInfo(
        name="dspark",
        label="DSpark",
        badge="b",
        explanation="drafted by a DSpark drafter: a block in one pass, each by the one before",
        colours=("lime",),
        line="dash-dot",
        is_numbered=True,
        draws_block=True,
    ),
    DrafterChoice(
        "dspark",
        "DSpark drafter",
        "A drafter that fills a block in one pass, then reweights each draft token by the one "
        "before it.",
    ),
    hint=tr("Load a DSpark drafter for this model, or choose another drafter."),
)
