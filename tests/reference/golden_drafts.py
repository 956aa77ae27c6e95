"""Drafts of tiny random heads of every kind in float64, which a change of the heads must keep.

`golden/heads/drafts.json` has, by the names of `HEADS_OF_KIND`, the candidates after some paths
with their probabilities. As for models, the weights follow from the tensors' names.
`python -m tests.tools.record_golden` records what is missing.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file

from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lineup import source_registry
from tests.reference.golden import FOLDER, TensorSpec, weights_of
from tests.support.engine.heard_text import TEXT, candidates_of, hear
from tests.support.models.heads_of_kind import EXACT, HEADS_OF_KIND, load_heads

FILE = FOLDER / "heads" / "drafts.json"
_ROWS, _LEVELS = 24, 3
_PROBABILITY_ERROR = 1e-6  # they are kept as float32

# By path, whose tokens are joined by spaces: tokens, and their probabilities.
Drafts = dict[str, tuple[list[int], list[float]]]


def drafts_of(name: str, folder: Path) -> Drafts:
    """Return what heads draft after a text, level by level.

    Args:
        name: Kind of heads, of `HEADS_OF_KIND`.
        folder: Takes the target and the heads.
    """
    kind = HEADS_OF_KIND[name]
    kind.write(folder / "model", folder / "heads")
    for file in folder.rglob("*.safetensors"):
        _set_weights(file)
    target = load_heads(folder, EXACT)
    source = source_registry().get(kind.drafter).build(target, RowBudget(_ROWS))
    drafts: Drafts = {}
    for text, pieces in ((TEXT, [4, 1, 3]), ([*TEXT[:6], 15, 250, 33], [6, 2])):
        hear(target, source, text, pieces)
        source.start(text[-1], _ROWS)
        paths: list[tuple[int, ...]] = [()]
        for _ in range(_LEVELS):
            found = candidates_of(source, *paths)
            for path, candidates in zip(paths, found, strict=True):
                key = " ".join(map(str, (*text[-2:], *path)))
                drafts[key] = list(candidates), list(candidates.values())
            paths = [(*paths[0], token) for token in list(found[0])[:3]]
    return drafts


def _set_weights(file: Path) -> None:
    """Replace random numbers by those that follow from the tensors' names."""
    tensors = load_file(file)
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            numbers = weights_of(f"{file.parent.name} {name}", TensorSpec.like(tensor))
            tensors[name] = numbers.to(tensor.dtype)
    save_file(tensors, file, metadata)


def recorded_drafts() -> dict[str, Drafts]:
    """Return recorded drafts by kind of heads; empty if none were recorded."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def differing_paths(found: Drafts, wanted: Drafts) -> list[str]:
    """Return the paths after which other tokens or probabilities are drafted."""
    if found.keys() != wanted.keys():
        return [f"{sorted(found)} instead of {sorted(wanted)}"]
    return [path for path in wanted if not _equal(found[path], wanted[path])]


def _equal(found: tuple[list[int], list[float]], wanted: tuple[list[int], list[float]]) -> bool:
    return list(found[0]) == list(wanted[0]) and all(
        math.isclose(one, other, rel_tol=_PROBABILITY_ERROR)
        for one, other in zip(found[1], wanted[1], strict=True)
    )
