"""Prompt lookup as a source: what followed the same words before may follow them again.

Looks for the longest suffix of the text, prompt and answer, that occurred before, and offers what
came behind it; the latest occurrences come first, and different ones branch.

Source: prompt lookup decoding (Saxena 2023); REST (He et al. 2024), section 3, for the trie.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)

LONGEST_SUFFIX = 4  # tokens; longer ones are nearly always unique
DEEPEST = 6
MOST_MATCHES = 3
# Before anything is known: how often a continuation goes on to be right, by the suffix's length.
# One counted step weighs as much as one of these.
_PRIOR = (0.15, 0.35, 0.55, 0.7)
_PRIOR_WEIGHT = 4.0
_BYTES = 4


class LookupMatch(NamedTuple):
    """What followed an earlier occurrence of the text's end.

    Attributes:
        token_ids: The tokens behind it.
        suffix: Tokens of the suffix that occurred before.
    """

    token_ids: tuple[int, ...]
    suffix: int


class LookupSource:
    """The text so far, and how often what followed suffixes of each length was right.

    The text's bytes are searched: that is quicker than keeping an index, and nothing is to be made
    when an answer begins or is cut.
    """

    def __init__(self) -> None:
        self.guesses: Sequence[Sequence[int]] = ()
        self._text = array("i")
        self._right, self._tried = list(_PRIOR), [1.0] * LONGEST_SUFFIX
        self._matches: list[LookupMatch] = []

    def begin(self, token_ids: Sequence[int]) -> None:
        self._text = array("i", token_ids)
        self._right, self._tried = list(_PRIOR), [1.0] * LONGEST_SUFFIX
        self._matches = []

    def start(self, root_id: int, most_rows: int) -> None:
        self._matches = matches_in(self._text, min(DEEPEST, most_rows - 1))

    def candidates(self, paths: Paths) -> Candidates | None:
        level = paths.level
        going_on = [match for match in self._matches if len(match.token_ids) > level]
        if not going_on:
            return None
        found = [self._behind(paths.path(i), going_on) for i in range(paths.num)]
        return Candidates(
            array("i", [token_id for followers in found for token_id in followers]),
            array("f", [chance for followers in found for chance in followers.values()]),
            array("i", map(len, found)),
        )

    def _behind(self, path: tuple[int, ...], matches: list[LookupMatch]) -> dict[int, float]:
        level = len(path)
        found: dict[int, float] = {}
        for token_ids, suffix in matches:
            if token_ids[:level] == path:
                token_id, chance = token_ids[level], self._chance(suffix, level)
                found[token_id] = max(chance, found.get(token_id, 0.0))
        return found

    def _chance(self, suffix: int, level: int) -> float:
        """How likely the next token of a continuation is; what has held is likelier to hold on."""
        share = self._right[suffix - 1] / self._tried[suffix - 1]
        return share if level == 0 else math.sqrt(share)

    def observe(self, observation: Observation) -> None:
        if self._matches:
            token_ids, suffix = self._matches[0]
            self._tried[suffix - 1] += 1 / _PRIOR_WEIGHT
            self._right[suffix - 1] += (token_ids[0] == observation.token_ids[0]) / _PRIOR_WEIGHT
        self._matches = []
        self._text.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._matches = []
        del self._text[length:]


def matches_in(text: array[int], most_tokens: int) -> list[LookupMatch]:
    """What followed earlier occurrences of a text's end, behind longer suffixes first.

    Args:
        text: All tokens so far. int32
        most_tokens: Longest continuation.
    """
    found: dict[tuple[int, ...], LookupMatch] = {}
    if most_tokens > 0:
        packed = text.tobytes()
        for suffix in range(min(LONGEST_SUFFIX, len(text) - 1), 0, -1):
            for place in _places(packed, suffix):
                if len(found) == MOST_MATCHES:
                    return list(found.values())
                followed = tuple(text[place : place + most_tokens])
                found.setdefault(followed, LookupMatch(followed, suffix))
    return list(found.values())


def _places(packed: bytes, suffix: int) -> Iterator[int]:
    """The places right behind earlier occurrences of the last tokens, the latest first."""
    size = suffix * _BYTES
    end, at = packed[len(packed) - size :], len(packed) - size
    while (at := packed.rfind(end, 0, at + size - 1)) >= 0:
        if at % _BYTES == 0:  # else the bytes only look alike
            yield at // _BYTES + suffix


def _serves(_: Target) -> bool:
    return True


def _build(_: Target, __: RowBudget) -> LookupSource:
    return LookupSource()


SPEC = SourceSpec(
    SourceInfo(
        name="ngram",
        label="lookup",
        badge="lookup",
        explanation="found in the text so far",
        colours=("grey",),
        line="dash",
    ),
    serves=_serves,
    build=_build,
    weight=0.0,
    alone=DrafterChoice(
        "ngram",
        "Prompt lookup",
        "A search for the same words earlier in the text.",
    ),
    preference=30,
)
