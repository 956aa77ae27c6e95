"""Granite 3 (dense): Llama with factors on vectors, attention, halves of blocks and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.llama import llama_traits
from medusa_core.models.architecture import Arch, positive
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits
from medusa_core.system.files.gguf import Gguf


def granite_traits(raw: Mapping[str, Any]) -> Traits:
    """Its factors, and Llama's biases."""
    return replace(
        llama_traits(raw),
        embedding_scale=positive(raw, "embedding_multiplier", 1.0) or 1.0,
        residual_scale=positive(raw, "residual_multiplier", 1.0) or 1.0,
        score_divisor=positive(raw, "logits_scaling", 1.0) or 1.0,
        attention_scale=positive(raw, "attention_multiplier", 1.0),
    )


GGUF_FACTORS = {
    "attention_multiplier": "attention.scale",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    if gguf.of_model("rope.scaling.finetuned") is False:  # llama.cpp's switch for RoPE
        raise ModelError(
            "This Granite doesn't turn queries and keys by position, which isn't supported.",
            "Choose Granite 3, or a Granite 4 that does.",
        )
    return {}


SPEC = Arch(
    "granite",
    granite_traits,
    gguf=GgufArchitecture("granite", keys=GGUF_FACTORS, config=_gguf_config, interleaved_rope=True),
)
