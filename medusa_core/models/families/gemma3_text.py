"""Gemma 3's text models: Gemma 2 with norms of queries and keys, and two bases of rotation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from medusa_core.models.family import (
    Activation,
    FamilySpec,
    NormPlaces,
    Traits,
    layer_kinds,
    layer_windows,
    positive,
)


def _traits(raw: Mapping[str, Any]) -> Traits:
    width = positive(raw, "hidden_size", 1.0) or 1.0
    scalar = positive(raw, "query_pre_attn_scalar", positive(raw, "head_dim", 256.0)) or 256.0
    bias = bool(raw.get("attention_bias", False))
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        qk_norm=True,
        norm_places=NormPlaces.AROUND,
        norm_offset=1.0,
        activation=Activation.GELU_TANH,
        embedding_scale=math.sqrt(width),
        attention_scale=1 / math.sqrt(scalar),
        attention_cap=positive(raw, "attn_logit_softcapping", None),
        score_cap=positive(raw, "final_logit_softcapping", None),
        windows=layer_windows(raw, layer_kinds(raw, 6)),
        local_theta=_local_theta(raw),
        scales_local=False,
        is_tied=True,
    )


def _local_theta(raw: Mapping[str, Any]) -> float | None:
    """Old files have `rope_local_base_freq`, new ones the kind of layer in `rope_parameters`."""
    told = raw.get("rope_parameters")
    local = told.get("sliding_attention") if isinstance(told, Mapping) else None
    if isinstance(local, Mapping):
        return positive(local, "rope_theta", 10000.0)
    return positive(raw, "rope_local_base_freq", 10000.0)


SPEC = FamilySpec("gemma3_text", _traits)
