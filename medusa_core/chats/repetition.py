"""Whether an answer has come to repeat itself."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST, _TIMES, _LEAST_TOKENS = 64, 4, 48


def repeats(token_ids: Sequence[int]) -> bool:
    """Whether a text ends with the same tokens, at most 64, at least four times over."""
    for period in range(1, min(_LONGEST, len(token_ids) // _TIMES) + 1):
        length = max(_TIMES * period, _LEAST_TOKENS)
        tail = token_ids[-length:]
        if len(tail) == length and all(map(int.__eq__, tail[period:], tail)):
            return True
    return False
