"""vLLM: `blocks.{head}.layers.{layer}`, `lm_heads.{head}`, optionally a reduced vocabulary.

`token_map` has the token id of each row of the projections. One `lm_head.weight` may replace the
projections of all heads.
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
    layer_part,
    layer_tensors,
)
from medusa_core.heads.weights import HeadSet

_LAYER = re.compile(r"(?:medusa_heads\.)?blocks\.(\d{1,4})\.layers\.(\d{1,4})\.(weight|bias)")
_PROJECTION = re.compile(r"(?:medusa_heads\.)?lm_heads\.(\d{1,4})\.weight")
_OTHERS = {
    "token_map": HeadsTensor(TensorRole.TOKEN_MAP),
    "lm_head.weight": HeadsTensor(TensorRole.ONE_PROJECTION),
}


def _part(name: str) -> HeadsTensor | None:
    """Return the identity of a tensor; None for unknown names."""
    if match := _LAYER.fullmatch(name):
        return layer_part(match)
    if match := _PROJECTION.fullmatch(name):
        return HeadsTensor(TensorRole.PROJECTION, int(match[1]))
    return _OTHERS.get(name.removeprefix("medusa_heads."))


def _claims(names: frozenset[str]) -> bool:
    """Whether tensors of these names are in this format."""
    return any(_LAYER.fullmatch(name) or _PROJECTION.fullmatch(name) for name in names)


def _write(heads: HeadSet, base_model: str) -> HeadsFile:
    """Return heads as tensors and configuration of this format."""
    check_reads_no_root(heads)
    vocab_size = heads.num_columns
    if vocab_size is None:
        raise HeadsError(
            "These heads share the model's projection; vLLM needs one for each.",
            "Name the model with --model.",
        )
    tensors = layer_tensors(heads, "blocks.{head}.layers.{layer}.{part}")
    for index, head in enumerate(heads.heads):
        if head.projection is not None:
            tensors[f"lm_heads.{index}.weight"] = head.projection
    if heads.projection is not None:
        tensors["lm_head.weight"] = heads.projection
    if heads.token_map is not None:
        tensors["token_map"] = heads.token_map
        vocab_size = int(heads.token_map.max()) + 1
    config = {
        "model_type": "medusa",
        "architectures": ["MedusaModel"],
        "base_model_name_or_path": base_model,
        "num_heads": len(heads.heads),
        "num_hidden_layers": heads.num_layers,
        "hidden_size": heads.hidden_size,
        "vocab_size": vocab_size,
        "truncated_vocab_size": heads.num_columns,
        "medusa_fc_bias": any(bias is not None for _, bias in heads.heads[0].layers),
        "original_lm_head": heads.projection is not None,
    }
    return HeadsFile("model.safetensors", tensors, config)


SPEC = HeadsFormat("vllm", claims=_claims, part=_part, write=_write)
