"""v0.1: each head has its own projection. Also TGI's and TensorRT-LLM's format.

`{head}.{layer}.linear.{weight,bias}`, then `{head}.{layers}.weight`; TensorRT-LLM's checkpoints may
prefix names with `medusa_heads.`.
"""

from __future__ import annotations

import re

from medusa_core.errors import HeadsError
from medusa_core.heads.format import (
    HeadsFile,
    HeadsFormat,
    HeadsTensor,
    TensorRole,
    check_reads_no_root,
    layer_tensors,
)
from medusa_core.heads.weights import HeadSet

_KEY = re.compile(r"(?:medusa_heads\.)?(\d{1,4})\.(\d{1,4})\.(linear\.weight|linear\.bias|weight)")
LAYER_NAME = "{head}.{layer}.linear.{part}"
_KINDS = {
    "linear.weight": TensorRole.WEIGHT,
    "linear.bias": TensorRole.BIAS,
    "weight": TensorRole.PROJECTION,
}


def part_of(name: str) -> HeadsTensor | None:
    """Return the identity of a tensor; v2 has the same names."""
    match = _KEY.fullmatch(name)
    return None if match is None else HeadsTensor(_KINDS[match[3]], int(match[1]), int(match[2]))


def _claims(names: frozenset[str]) -> bool:
    """Whether tensors of these names include a projection per head."""
    parts = [part for name in names if (part := part_of(name))]
    return any(part.kind is TensorRole.PROJECTION for part in parts)


def _write(heads: HeadSet, base_model: str) -> HeadsFile:
    """Return heads as tensors and configuration of this format."""
    check_reads_no_root(heads)
    if heads.token_map is not None:
        raise HeadsError(
            "These heads draft from a reduced vocabulary, which v0.1 can't say.",
            "Convert them to vllm.",
        )
    tensors = layer_tensors(heads, LAYER_NAME)
    for index, head in enumerate(heads.heads):
        projection = heads.projection if head.projection is None else head.projection
        if projection is None:
            raise HeadsError(
                "These heads share the model's projection; v0.1 needs one for each.",
                "Name the model with --model, or convert to v2.",
            )
        tensors[f"{index}.{heads.num_layers}.weight"] = projection.clone()
    config = {
        "base_model_name_or_path": base_model,
        "medusa_num_heads": len(heads.heads),
        "medusa_num_layers": heads.num_layers,
    }
    return HeadsFile("medusa_lm_head.safetensors", tensors, config)


SPEC = HeadsFormat("v0.1", claims=_claims, part=part_of, write=_write)
