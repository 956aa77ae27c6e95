"""All sources that only draft, at once in a tree grown for each step."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.drafters.sources.heads_source import HINT

SPEC = grown_spec(
    DrafterChoice(
        "composite",
        "All methods",
        "All sources of drafts that this model has, together in one tree.",
    ),
    [spec.name for spec in source_registry().specs if not spec.rides],
    preference=0,
    needs_all=False,
    hint=HINT,
)
