"""Llama 2 and 3, and all that took its architecture: Vicuna, TinyLlama, Yi."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits


def llama_traits(raw: Mapping[str, Any]) -> Traits:
    """Its biases."""
    attention_bias = bool(raw.get("attention_bias", False))
    return Traits(
        qkv_bias=attention_bias,
        output_bias=attention_bias,
        mlp_bias=bool(raw.get("mlp_bias", False)),
    )


SPEC = Arch(
    "llama",
    llama_traits,
    gguf=GgufArchitecture("llama", windowed_type="mistral", interleaved_rope=True),
)
