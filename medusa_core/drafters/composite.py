"""Medusa, prompt lookup and what the model often says, in one tree under one budget of rows.

Each says what its nodes are worth in this step: the heads by what they give their guesses, the
lookup by how often suffixes of that length were right, phrases by how often they were said. A guess
of a head is weighed with what its own path's phrases say of it.
"""

from __future__ import annotations

from medusa_core.drafters.drafter import DrafterSpec
from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.lookup import Lookup
from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import heads_and_trees
from medusa_core.target import Target
from medusa_core.types import RowBudget


def _build(target: Target, budget: RowBudget) -> GrownDrafter:
    return GrownDrafter(budget, heads_and_trees(target)[0], Lookup(), target.phrases)


SPEC = DrafterSpec("composite", serves=MEDUSA.serves, build=_build, weighs_rows=True)
