"""The size of a batch's cache: rows that its conversations need, not a whole context for each."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.runtime.kv.size import ROUND_ROWS, whole_rows


def sessions_for(lengths: Sequence[int], max_batch: int, context_tokens: int) -> int:
    """Number of whole contexts whose rows suffice for the longest conversations at once.

    Args:
        lengths: Tokens of every conversation, its answer included.
        max_batch: Number of conversations at once.
        context_tokens: Maximum length of a conversation.
    """
    longest = sorted(lengths, reverse=True)[:max_batch]
    rows = sum(-(-(length + 2) // ROUND_ROWS) * ROUND_ROWS for length in longest)
    return max(1, -(-rows // whole_rows(context_tokens)))
