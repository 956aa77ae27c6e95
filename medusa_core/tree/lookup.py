"""What followed the same words before: the beginnings of earlier continuations of a text's end.

Source: prompt lookup decoding (Saxena 2023).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_SUFFIX = 4  # tokens; longer ones are nearly always unique
DEEPEST = 6
MOST_MATCHES = 3


class Continuation(NamedTuple):
    """What followed an earlier occurrence.

    Attributes:
        token_ids: The tokens behind it.
        suffix: Tokens of the suffix that occurred before.
    """

    token_ids: tuple[int, ...]
    suffix: int


def continuations(
    text: array[int], trust: array[float], most_tokens: int, least: float = 0.0
) -> list[Continuation]:
    """What followed earlier occurrences of the text's end, the likeliest first.

    Args:
        text: All tokens so far.
        trust: How likely the first 1, 2, ... tokens behind a suffix of 1, 2, ... tokens are all
            right. [LONGEST_SUFFIX, DEEPEST], row after row
        most_tokens: Longest continuation.
        least: Suffixes that don't make the next token likelier than this aren't looked for.
    """
    tokens, depth = text.tolist(), min(most_tokens, DEEPEST)
    found: dict[tuple[int, ...], Continuation] = {}
    for suffix in range(LONGEST_SUFFIX if depth > 0 else 0, 0, -1):
        if trust[(suffix - 1) * DEEPEST] <= least:
            continue
        for place in _places(tokens, suffix):
            if len(found) == MOST_MATCHES:
                break
            followed = tuple(tokens[place : place + depth])
            found.setdefault(followed, Continuation(followed, suffix))
    return list(found.values())


def _places(tokens: list[int], suffix: int) -> Iterator[int]:
    """The places right behind earlier occurrences of the last tokens, the latest first."""
    end = tokens[len(tokens) - suffix :]
    for place in range(len(tokens) - 1, suffix - 1, -1):
        if tokens[place - suffix : place] == end:
            yield place
