"""Qwen 2 and 2.5: biases on queries, keys and values; a window only where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, sliding_window
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    window = sliding_window(raw) if raw.get("use_sliding_window") else None
    return Traits(qkv_bias=True, window=window)


SPEC = Arch("qwen2", _traits, gguf=GgufArchitecture("qwen2", aliases=("qwen2vl",)))
