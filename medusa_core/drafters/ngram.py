"""Prompt lookup: what followed the same words before may follow them again.

Looks for the longest suffix of the text, prompt and answer, that occurred before, and offers what
came behind it; the latest occurrences come first, and different ones branch.

Source: prompt lookup decoding (Saxena 2023); REST (He et al. 2024), section 3, for the trie.
"""

from __future__ import annotations

from medusa_core.drafters.drafter import DrafterSpec
from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.lookup import Lookup
from medusa_core.target import Target
from medusa_core.types import RowBudget


def _serves(_: Target) -> bool:
    return True


def _build(_: Target, budget: RowBudget) -> GrownDrafter:
    return GrownDrafter(budget, lookup=Lookup())


SPEC = DrafterSpec("ngram", serves=_serves, build=_build, weighs_rows=True)
