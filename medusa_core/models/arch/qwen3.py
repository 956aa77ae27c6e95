"""Qwen 3 (dense): queries and keys normalised per head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, sliding_window
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits


def qwen3_traits(raw: Mapping[str, Any]) -> Traits:
    """Norms of heads, biases and a window."""
    attention_bias = bool(raw.get("attention_bias", False))
    return Traits(
        qkv_bias=attention_bias,
        output_bias=attention_bias,
        qk_norm=True,
        window=sliding_window(raw) if raw.get("use_sliding_window") else None,
    )


SPEC = Arch("qwen3", qwen3_traits, gguf=GgufArchitecture("qwen3", aliases=("qwen3vl",)))
