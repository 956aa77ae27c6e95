"""v2: residual layers alone; all heads share the target's projection. Also TGI's format."""

from __future__ import annotations

from medusa_core.errors import HeadsError
from medusa_core.heads.format import (
    HeadsFile,
    HeadsFormat,
    TensorRole,
    check_reads_no_root,
    layer_tensors,
)
from medusa_core.heads.formats.v01 import LAYER_NAME, part_of
from medusa_core.heads.weights import HeadSet


def _claims(names: frozenset[str]) -> bool:
    """Whether tensors of these names are residual layers without projections."""
    parts = [part for name in names if (part := part_of(name))]
    return bool(parts) and all(part.kind is not TensorRole.PROJECTION for part in parts)


def _write(heads: HeadSet, base_model: str) -> HeadsFile:
    """Return heads as tensors and configuration of this format."""
    check_reads_no_root(heads)
    if heads.num_columns is not None:
        raise HeadsError(
            "These heads don't share the model's projection; v2 has no place for them.",
            "Convert them to v0.1 or vllm.",
        )
    config = {
        "base_model_name_or_path": base_model,
        "medusa_num_heads": len(heads.heads),
        "medusa_num_layers": heads.num_layers,
        "version": "2",
    }
    return HeadsFile("medusa_lm_head.safetensors", layer_tensors(heads, LAYER_NAME), config)


SPEC = HeadsFormat("v2", claims=_claims, part=part_of, write=_write)
