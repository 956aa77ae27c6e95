"""Granite 3 (dense): Llama with factors on vectors, attention, halves of blocks and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.families.llama import llama_traits
from medusa_core.models.family import FamilySpec, positive
from medusa_core.models.traits import Traits


def granite_traits(raw: Mapping[str, Any]) -> Traits:
    """Its factors, and Llama's biases."""
    return replace(
        llama_traits(raw),
        embedding_scale=positive(raw, "embedding_multiplier", 1.0) or 1.0,
        residual_scale=positive(raw, "residual_multiplier", 1.0) or 1.0,
        score_divisor=positive(raw, "logits_scaling", 1.0) or 1.0,
        attention_scale=positive(raw, "attention_multiplier", 1.0),
    )


SPEC = FamilySpec("granite", granite_traits)
