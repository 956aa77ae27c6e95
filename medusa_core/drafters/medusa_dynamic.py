"""Medusa with a tree of its own for every step, grown by how sure the heads are."""

from __future__ import annotations

from medusa_core.drafters.drafter import DrafterSpec
from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import heads_and_trees
from medusa_core.target import Target
from medusa_core.types import RowBudget


def _build(target: Target, budget: RowBudget) -> GrownDrafter:
    return GrownDrafter(budget, heads_and_trees(target)[0])


SPEC = DrafterSpec("medusa-dynamic", serves=MEDUSA.serves, build=_build, weighs_rows=True)
