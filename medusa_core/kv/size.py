"""How large a cache is. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig

ROUND_ROWS = 16  # caches lie in multiples of this, as panels of the compiled step do
_SPARE_ROWS = 64  # for the tree behind a full context, and a slot for padding rows


def whole_rows(context_tokens: int) -> int:
    """Rows that all caches of a target have together: a whole context's."""
    return -(-(context_tokens + _SPARE_ROWS) // ROUND_ROWS) * ROUND_ROWS


def row_bytes(config: ModelConfig, itemsize: int) -> int:
    """Bytes of a row: keys and values of one token in all layers."""
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * itemsize
