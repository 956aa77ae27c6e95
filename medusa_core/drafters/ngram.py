"""Prompt lookup: what followed the same words before may follow them again.

Looks for the longest suffix of the text, prompt and answer, that occurred before, and offers what
came behind it; the latest occurrences come first, and different ones branch.

Source: prompt lookup decoding (Saxena 2023); REST (He et al. 2024), section 3, for the trie.
"""

from __future__ import annotations

from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.lookup import Lookup
from medusa_core.engine.drafter import DrafterSpec
from medusa_core.target import Target
from medusa_core.tree.presets import Accuracies

# How often what is offered is right, where something is offered.
_WORTH = ((0.4, 0.08), (0.7, 0.05), (0.75,), (0.8,), (0.8,), (0.8,))


def _serves(_: Target) -> bool:
    return True


def _build(_: Target, num_rows: int) -> GrownDrafter:
    return GrownDrafter(num_rows, lookup=Lookup())


def _worth(_: Target, __: float) -> Accuracies:
    return _WORTH


SPEC = DrafterSpec("ngram", serves=_serves, build=_build, worth=_worth, asks_heads=False)
