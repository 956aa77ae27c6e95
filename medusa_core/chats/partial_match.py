"""Partial matches of a marker at the end of a streamed text."""

from __future__ import annotations


def partial_match_length(text: str, mark: str) -> int:
    """Return the length of the longest proper prefix of a marker that is a suffix of a text.

    Args:
        text: The text so far.
        mark: The marker, such as a tag.
    """
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-length:]):
            return length
    return 0
