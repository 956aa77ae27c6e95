"""Marks that a text may be in the middle of, while it is still being written."""

from __future__ import annotations


def partial_match_length(text: str, mark: str) -> int:
    """Length of the longest proper prefix of a mark that a text ends with.

    Args:
        text: What has been written so far.
        mark: What may begin at its end.
    """
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-length:]):
            return length
    return 0
