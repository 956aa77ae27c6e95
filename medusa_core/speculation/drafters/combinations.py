"""Drafters that combine several sources."""

from __future__ import annotations

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.grown import grown_spec
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.drafters.sources.heads_source import HINT


def combinations() -> tuple[DrafterSpec, ...]:
    """The combinations; each uses those of its sources that serve a target, at least two."""
    return (
        grown_spec(
            DrafterChoice(
                "composite",
                "All methods",
                "All sources of drafts that this model has, together in one tree.",
            ),
            # Sources with riders can't be combined.
            [spec.name for spec in source_registry().specs if not spec.rides],
            preference=0,
            hint=HINT,
        ),
        grown_spec(
            DrafterChoice(
                "phrases",
                "Phrases and suffix tree",
                "A table of what the model often says, and what followed the same words before.",
            ),
            ("phrases", "suffix"),
            preference=20,
        ),
    )
