"""Phi 3 and Phi-4-mini: fused projections, and partial RoPE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, limited_to_window, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture, round_float32
from medusa_core.system.files.gguf import Gguf


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with fused QKV and fused gate and up projections."""
    mixer = attention(config)
    mixer = replace(mixer, qkv=mixer.qkv.fused_in("self_attn.qkv_proj"))
    return [
        BlockSpec(pre_norms(config), (mixer,), mlp(config, fused="gate_up_proj"))
    ] * config.num_layers


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
    _blocks,
    limited_to_window,
    gguf=GgufArchitecture(
        "phi3",
        {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
        config=_gguf_config,
        reads=frozenset({"rope.scaling.attn_factor"}),
        partial_rotary=True,
    ),
)
