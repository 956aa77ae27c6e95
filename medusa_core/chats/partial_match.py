"""Partial matches of a marker at the end of a streamed text."""

from __future__ import annotations


def partial_match_length(text: str, marker: str) -> int:
    """Return the length of the longest proper prefix of a marker that is a suffix of a text.

    Args:
        text: The text so far.
        marker: The marker, such as a tag.
    """
    for length in range(min(len(marker) - 1, len(text)), 0, -1):
        if marker.startswith(text[-length:]):
            return length
    return 0
