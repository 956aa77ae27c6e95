"""What the model often says, and prompt lookup: drafts without heads, which cost next to nothing.

Source: Kim et al., "Exploring and Improving Drafts in Blockwise Parallel Decoding" (2024), for
n-grams; prompt lookup decoding (Saxena 2023).
"""

from __future__ import annotations

from medusa_core.drafters.drafter import DrafterSpec
from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.lookup import Lookup
from medusa_core.target import Target
from medusa_core.types import RowBudget


def _serves(target: Target) -> bool:
    return target.phrases is not None


def _build(target: Target, budget: RowBudget) -> GrownDrafter:
    return GrownDrafter(budget, lookup=Lookup(), phrases=target.phrases)


SPEC = DrafterSpec(
    "phrases",
    serves=_serves,
    build=_build,
    weighs_rows=True,
    hint="Make its phrase table (python -m medusa_core train phrases), or choose another drafter.",
)
