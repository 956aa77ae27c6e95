"""How large a cache is. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig

ROUND_ROWS = 16  # caches lie in multiples of this, as panels of the compiled step do
_GROUP = 64
_SPARE_ROWS = 64  # for the tree behind a full context, and a slot for padding rows


def whole_rows(context_tokens: int) -> int:
    """Rows that all caches of a target have together: a whole context's."""
    return -(-(context_tokens + _SPARE_ROWS) // ROUND_ROWS) * ROUND_ROWS


def row_bytes(config: ModelConfig, itemsize: int, cache: str = "") -> int:
    """Bytes of a row: keys and values of one token in all layers.

    Args:
        config: Sizes of the target.
        itemsize: Bytes of a plain number.
        cache: `q4`; empty for plain numbers.
    """
    head = packed_bytes(config.head_dim) if cache else config.head_dim * itemsize
    return 2 * config.num_layers * config.num_kv_heads * head


def packed_bytes(head_dim: int) -> int:
    """Bytes of a head's numbers of one slot in 4 bits, with scales."""
    return head_dim // 2 + 4 * (head_dim // group_size(head_dim))


def group_size(head_dim: int) -> int:
    """Numbers that share a scale in 4 bits: 64 where heads are that wide."""
    return next(size for size in range(min(_GROUP, head_dim), 0, -1) if head_dim % size == 0)
