"""Hunyuan (dense): Llama whose queries and keys are normalized per head after the rotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.architecture import MAX_HIDDEN, Arch, ArchConfig, positive, whole
from medusa_core.models.blocks.compose import QkNorm, attention, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Scale the base of the frequencies by `alpha`.

    Source: NTK-aware scaling, as transformers' `hunyuan_v1_dense` reads it.
    """
    rope = raw.get("rope_parameters") or raw.get("rope_scaling")
    if not isinstance(rope, Mapping):
        return raw
    alpha = positive(rope, "alpha", None)
    if alpha is None or rope.get("rope_type", rope.get("type")) != "dynamic":
        # Norms after the rotation take any attention factor away again.
        return {**raw, "rope_parameters": {**rope, "attention_factor": 1.0}}
    theta = positive(rope, "rope_theta", positive(raw, "rope_theta", 10000.0)) or 10000.0
    size = _head_dim(raw)
    scaled = theta * alpha ** (size / (size - 2)) if size > 2 else theta
    return {**raw, "rope_parameters": {"rope_type": "default", "rope_theta": scaled}}


def _head_dim(raw: Mapping[str, Any]) -> int:
    """Return `head_dim`, by default hidden size / heads."""
    heads = whole(raw, "num_attention_heads", MAX_HIDDEN, 1)
    return whole(raw, "head_dim", MAX_HIDDEN, whole(raw, "hidden_size", MAX_HIDDEN, 1) // heads)


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with QK norm after RoPE."""
    norms = QkNorm(("query_layernorm", "key_layernorm"))
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=norms)
    mixer = replace(mixer, norm_after_rope=True)
    return [BlockSpec(pre_norms(config), (mixer,), mlp(config))] * config.num_layers


SPEC = Arch(
    "hunyuan_v1_dense",
    _blocks,
    normalize=_normalize,
    gguf=GgufArchitecture(
        "hunyuan-dense",
        {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
    ),
)
