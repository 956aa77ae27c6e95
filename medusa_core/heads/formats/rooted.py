"""Own format: first layers read the root's embedding, too, and all heads share one projection.

`heads.{head}.layers.{layer}.{weight,bias}`; `lm_head.weight` and, with a reduced vocabulary,
`token_map`, both as in vLLM. Without `lm_head.weight` the target's projection is used.
"""

from __future__ import annotations

import re

from medusa_core.errors import HeadsError
from medusa_core.heads.format import (
    HeadsFile,
    HeadsFormat,
    HeadsTensor,
    TensorRole,
    layer_part,
    layer_tensors,
)
from medusa_core.heads.weights import HeadSet

_LAYER = re.compile(r"heads\.(\d{1,4})\.layers\.(\d{1,4})\.(weight|bias)")
_SHARED = {
    "token_map": HeadsTensor(TensorRole.TOKEN_MAP),
    "lm_head.weight": HeadsTensor(TensorRole.ONE_PROJECTION),
}


def _part(name: str) -> HeadsTensor | None:
    """Return the identity of a tensor; None for unknown names."""
    if match := _LAYER.fullmatch(name):
        return layer_part(match)
    return _SHARED.get(name)


def _claims(names: frozenset[str]) -> bool:
    """Whether tensors of these names are in this format."""
    return any(_LAYER.fullmatch(name) for name in names)


def _write(heads: HeadSet, base_model: str) -> HeadsFile:
    """Return heads as tensors and configuration of this format."""
    if any(head.projection is not None for head in heads.heads):
        raise HeadsError(
            "These heads have projections of their own, which 'rooted' has no place for.",
            "Convert them to v0.1 or vllm.",
        )
    tensors = layer_tensors(heads, "heads.{head}.layers.{layer}.{part}")
    if heads.projection is not None:
        tensors["lm_head.weight"] = heads.projection
    if heads.token_map is not None:
        tensors["token_map"] = heads.token_map
    config = {
        "base_model_name_or_path": base_model,
        "medusa_num_heads": len(heads.heads),
        "medusa_num_layers": heads.num_layers,
        "version": "rooted",
    }
    return HeadsFile("medusa_lm_head.safetensors", tensors, config)


SPEC = HeadsFormat("rooted", claims=_claims, part=_part, write=_write)
