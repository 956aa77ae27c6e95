"""Medusa with a tree of its own for every step, grown by how sure the heads are."""

from __future__ import annotations

from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import heads_and_trees
from medusa_core.engine.drafter import DrafterSpec
from medusa_core.target import Target


def _build(target: Target, num_rows: int) -> GrownDrafter:
    return GrownDrafter(num_rows, heads_and_trees(target)[0])


SPEC = DrafterSpec("medusa-dynamic", serves=MEDUSA.serves, build=_build)
