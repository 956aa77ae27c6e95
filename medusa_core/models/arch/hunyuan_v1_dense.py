"""Hunyuan (dense): Llama whose queries and keys are normalised per head behind the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.llama import llama_traits
from medusa_core.models.architecture import Arch, positive, whole
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits

_MOST_WIDTH = 1 << 17


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration whose `alpha` stretches the base of the frequencies, once and for all.

    Source: NTK-aware scaling, as transformers' `hunyuan_v1_dense` reads it.
    """
    rope = raw.get("rope_parameters") or raw.get("rope_scaling")
    if not isinstance(rope, Mapping):
        return raw
    alpha = positive(rope, "alpha", None)
    if alpha is None or rope.get("rope_type", rope.get("type")) != "dynamic":
        # Norms behind the turn take any strength away again.
        return {**raw, "rope_parameters": {**rope, "attention_factor": 1.0}}
    theta = positive(rope, "rope_theta", positive(raw, "rope_theta", 10000.0)) or 10000.0
    size = _head_dim(raw)
    stretched = theta * alpha ** (size / (size - 2)) if size > 2 else theta
    return {**raw, "rope_parameters": {"rope_type": "default", "rope_theta": stretched}}


def _head_dim(raw: Mapping[str, Any]) -> int:
    heads = whole(raw, "num_attention_heads", _MOST_WIDTH, 1)
    return whole(raw, "head_dim", _MOST_WIDTH, whole(raw, "hidden_size", _MOST_WIDTH, 1) // heads)


def _traits(raw: Mapping[str, Any]) -> Traits:
    return replace(llama_traits(raw), mlp_bias=False, qk_norm=True, norms_turned=True)


SPEC = Arch(
    "hunyuan_v1_dense",
    _traits,
    as_usual=_as_usual,
    names={"q_norm": "query_layernorm", "k_norm": "key_layernorm"},
    gguf=GgufArchitecture(
        "hunyuan-dense",
        {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
    ),
)
