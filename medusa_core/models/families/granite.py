"""Granite 3 (dense): Llama with factors on vectors, attention, halves of blocks and scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.family import FamilySpec, Traits, positive


def _traits(raw: Mapping[str, Any]) -> Traits:
    attention_bias = bool(raw.get("attention_bias", False))
    return Traits(
        qkv_bias=attention_bias,
        output_bias=attention_bias,
        mlp_bias=bool(raw.get("mlp_bias", False)),
        embedding_scale=positive(raw, "embedding_multiplier", 1.0) or 1.0,
        residual_scale=positive(raw, "residual_multiplier", 1.0) or 1.0,
        score_divisor=positive(raw, "logits_scaling", 1.0) or 1.0,
        attention_scale=positive(raw, "attention_multiplier", 1.0),
    )


SPEC = FamilySpec("granite", _traits)
