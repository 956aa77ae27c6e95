"""Phi 3 and Phi-4-mini: fused projections, and heads of which a part is turned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.models.architecture import Arch, sliding_window
from medusa_core.models.gguf_architecture import GgufArchitecture, round_float32
from medusa_core.models.traits import Traits
from medusa_core.system.files.gguf import Gguf

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts


def _traits(raw: Mapping[str, Any]) -> Traits:
    return Traits(window=sliding_window(raw))


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts, as rows of the tensors that hold several of them."""
    from dataclasses import replace

    from medusa_core.models.parts import MlpParts, shared_parts

    parts = shared_parts(config, index)
    assert parts.mlp is not None
    assert parts.qkv is not None
    gate_up = parts.mlp.gate_up.fused_in(f"{parts.prefix}.mlp.gate_up_proj")
    return replace(
        parts,
        qkv=parts.qkv.fused_in(f"{parts.prefix}.self_attn.qkv_proj"),
        mlp=MlpParts(gate_up, parts.mlp.down),
    )


_LONG, _SHORT = "rope_factors_long.weight", "rope_factors_short.weight"


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return longrope, whose `attn_factor` follows from the context lengths."""
    if not gguf.has_vector(_LONG) or not gguf.has_vector(_SHORT):
        return {}
    old = gguf.of_model("rope.scaling.original_context_length")
    return {
        "original_max_position_embeddings": old,
        "rope_scaling": {
            "rope_type": "longrope",
            "long_factor": [round_float32(factor) for factor in gguf.vector(_LONG)],
            "short_factor": [round_float32(factor) for factor in gguf.vector(_SHORT)],
            "original_max_position_embeddings": old,
        },
    }


SPEC = Arch(
    "phi3",
    _traits,
    parts=_parts,
    gguf=GgufArchitecture(
        "phi3",
        {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
        config=_gguf_config,
        reads=frozenset({"rope.scaling.attn_factor"}),
        partial_rotary=True,
    ),
)
