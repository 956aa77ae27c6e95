"""How large a cache is. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig

_SPARE_ROWS = 64  # for the tree behind a full context; larger trees make room for themselves


def whole_capacity(context_tokens: int) -> int:
    """Slots of a cache for a whole context."""
    return context_tokens + _SPARE_ROWS


def row_bytes(config: ModelConfig, itemsize: int) -> int:
    """Bytes of a row: keys and values of one token in all layers."""
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * itemsize
