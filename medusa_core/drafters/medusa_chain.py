"""Medusa as vLLM runs it: the best guess of every head, one behind the other, no branches.

It takes the fewest rows, which is what pays where every further row costs.
"""

from __future__ import annotations

from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import MedusaDrafter, heads_and_trees
from medusa_core.engine.drafter import DrafterSpec, worth_of_heads
from medusa_core.target import Target
from medusa_core.tree.presets import Accuracies
from medusa_core.tree.shape import TreeShape


def _build(target: Target, num_rows: int) -> MedusaDrafter:
    heads, _ = heads_and_trees(target)
    depth = min(heads.num_heads, num_rows - 1)
    shape = TreeShape.from_paths([(0,) * length for length in range(1, depth + 1)])
    return MedusaDrafter(heads, shape)


def _worth(target: Target, bucket: float) -> Accuracies:
    return tuple(row[:1] for row in worth_of_heads(target, bucket))


SPEC = DrafterSpec("medusa-chain", serves=MEDUSA.serves, build=_build, worth=_worth)
