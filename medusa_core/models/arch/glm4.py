"""GLM 4 (0414): norms around both halves; of each head the first half turns, stored as pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.models.architecture import Arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import NormPlaces, Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"partial_rotary_factor": 0.5, **raw}


def _traits(raw: Mapping[str, Any]) -> Traits:
    bias = bool(raw.get("attention_bias", True))
    return Traits(qkv_bias=bias, norm_places=NormPlaces.AROUND)


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts; gate and up are rows of one tensor."""
    from dataclasses import replace

    from medusa_core.models.parts import MlpParts, shared_parts

    parts = shared_parts(config, index)
    assert parts.mlp is not None
    assert parts.qkv is not None
    gate_up = parts.mlp.gate_up.fused_in(f"{parts.prefix}.mlp.gate_up_proj")
    return replace(parts, qkv=parts.qkv.stored_interleaved, mlp=MlpParts(gate_up, parts.mlp.down))


SPEC = Arch(
    "glm4",
    _traits,
    parts=_parts,
    as_usual=_as_usual,
    names={
        "post_attention_layernorm": "post_self_attn_layernorm",
        "pre_feedforward_layernorm": "post_attention_layernorm",
        "post_feedforward_layernorm": "post_mlp_layernorm",
    },
    gguf=GgufArchitecture(
        "glm4",
        {
            "post_attention_norm": "post_self_attn_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_up": "mlp.gate_up_proj",
        },
        partial_rotary=True,
    ),
)
