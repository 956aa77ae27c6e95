"""How much cache a batch needs: not a whole context for each conversation, but what each takes."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    whole_rows,
)


def sessions_for(lengths: Sequence[int], together: int, context_tokens: int) -> int:
    """As how many whole contexts the caches of the longest conversations are planned.

    Args:
        lengths: Tokens of every conversation, its answer included.
        together: How many are answered at once.
        context_tokens: The longest that one may become.
    """
    longest = sorted(lengths, reverse=True)[:together]
    rows = sum(-(-(length + 2) // ROUND_ROWS) * ROUND_ROWS for length in longest)
    return max(1, -(-rows // whole_rows(context_tokens)))
