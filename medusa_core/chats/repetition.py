"""Detect answers that repeat themselves."""

from __future__ import annotations

from collections.abc import Sequence

CHECK_EVERY = 32  # tokens between two checks
_WINDOW, _NGRAM = 320, 6
_MIN_DISTINCT = 80  # of the window's 315 n-grams: a passage of 80 tokens, four times over


def is_repetitive(token_ids: Sequence[int]) -> bool:
    """Return whether the last tokens of an answer say the same thing over and over.

    Counts the distinct n-grams of the last 320 tokens. Loops of sampled text vary a little from
    round to round, so exact periods would miss most of them. A line that was asked for ten times,
    a table or a list stays far above the limit, or is shorter than the window.

    Args:
        token_ids: The answer so far.
    """
    if len(token_ids) < _WINDOW:
        return False
    window = tuple(token_ids[-_WINDOW:])
    ngrams = {window[start : start + _NGRAM] for start in range(_WINDOW - _NGRAM + 1)}
    return len(ngrams) <= _MIN_DISTINCT
