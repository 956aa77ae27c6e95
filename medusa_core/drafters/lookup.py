"""An index of a growing text: where did its last tokens occur before, and what followed?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

_LONGEST = 4  # tokens of a suffix; longer ones are nearly always unique
_MOST_MATCHES = 3
_DEEPEST = 6
# Before anything is known: how often a continuation goes on to be right, by the suffix's length.
# One counted step weighs as much as one of these.
_PRIOR = (0.15, 0.35, 0.55, 0.7)
_PRIOR_WEIGHT = 4.0


class Continuation(NamedTuple):
    """What followed an earlier occurrence.

    Attributes:
        token_ids: The tokens behind it.
        length: Tokens of the suffix that occurred before.
    """

    token_ids: tuple[int, ...]
    length: int


class Lookup:
    """The text so far, indexed by its short suffixes.

    Attributes:
        token_ids: The text.
    """

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        # For each length of suffix: the places right behind its occurrences, oldest first.
        self._places: list[dict[tuple[int, ...], list[int]]] = [
            defaultdict(list) for _ in range(_LONGEST)
        ]
        self._right = list(_PRIOR)
        self._tried = [1.0] * _LONGEST
        self._offered: tuple[Continuation, ...] = ()

    def extend(self, token_ids: Sequence[int]) -> None:
        """The text goes on."""
        ids = self.token_ids
        for token_id in token_ids:
            ids.append(token_id)
            end = len(ids)
            for length in range(1, min(_LONGEST, end) + 1):
                self._places[length - 1][tuple(ids[end - length :])].append(end)

    def truncate(self, length: int) -> None:
        """Forget the text from `length` on."""
        kept, self.token_ids = self.token_ids[:length], []
        # Cuts are rare: an index that is made anew then is quicker the rest of the time.
        self._places = [defaultdict(list) for _ in range(_LONGEST)]
        self.extend(kept)

    def continuations(self, most_tokens: int) -> tuple[Continuation, ...]:
        """What followed earlier occurrences of the text's end, the likeliest first.

        Args:
            most_tokens: Longest continuation.
        """
        found: dict[tuple[int, ...], Continuation] = {}
        end, depth = len(self.token_ids), min(most_tokens, _DEEPEST)
        for length in range(min(_LONGEST, end), 0, -1):
            places = self._places[length - 1].get(tuple(self.token_ids[end - length :]), ())
            for place in reversed(places):
                if len(found) == _MOST_MATCHES or depth < 1:
                    break
                followed = tuple(self.token_ids[place : place + depth])
                if place < end and followed not in found:
                    found[followed] = Continuation(followed, length)
        self._offered = tuple(found.values())
        return self._offered

    def weighted(self, continuations: Sequence[Continuation]) -> dict[tuple[int, ...], float]:
        """All beginnings of continuations, each with the chance that all of it is right."""
        values: dict[tuple[int, ...], float] = {}
        for token_ids, length in continuations:
            for depth in range(1, len(token_ids) + 1):
                path = token_ids[:depth]
                values[path] = max(values.get(path, 0.0), self.chance(length, depth))
        return values

    def chance(self, length: int, depth: int) -> float:
        """How likely the first `depth` tokens behind a suffix of this length are all right."""
        share = self._right[length - 1] / self._tried[length - 1]
        # A continuation that has held is likelier to hold on: each further token costs less.
        return float(share ** ((1 + depth) / 2))

    def learn(self, token_ids: Sequence[int]) -> None:
        """Count whether the first tokens that were offered were right."""
        for offered in self._offered[:1]:
            place = offered.length - 1
            self._tried[place] += 1 / _PRIOR_WEIGHT
            self._right[place] += (offered.token_ids[0] == token_ids[0]) / _PRIOR_WEIGHT
        self._offered = ()
