"""Searches a growing text: where did its last tokens occur before, and what followed?"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LONGEST = 4  # tokens of a suffix; longer ones are nearly always unique
_MOST_MATCHES = 3
_ITEMSIZE = array("i").itemsize
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
    """The text so far, searched from its end.

    Searching its bytes is quicker than keeping an index: nothing is to be made when an answer
    begins or is cut.

    Attributes:
        token_ids: The text.
    """

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        self._bytes = bytearray()
        self._right = list(_PRIOR)
        self._tried = [1.0] * _LONGEST
        self._offered: tuple[Continuation, ...] = ()

    def extend(self, token_ids: Sequence[int]) -> None:
        """The text goes on."""
        self.token_ids.extend(token_ids)
        self._bytes += array("i", token_ids).tobytes()

    def truncate(self, length: int) -> None:
        """Forget the text from `length` on."""
        del self.token_ids[length:]
        del self._bytes[length * _ITEMSIZE :]

    def continuations(self, most_tokens: int, least: float = 0.0) -> tuple[Continuation, ...]:
        """What followed earlier occurrences of the text's end, the likeliest first.

        Args:
            most_tokens: Longest continuation.
            least: Suffixes that don't make the next token likelier than this aren't looked for.
        """
        self._offered = ()
        depth = min(most_tokens, _DEEPEST)
        longest = min(_LONGEST, len(self.token_ids)) if depth > 0 else 0
        # Where two tokens didn't occur before, no more did: the common case, found out first.
        if longest > 1 and self._bytes.rfind(self._bytes[-2 * _ITEMSIZE :], 0, -_ITEMSIZE) < 0:
            longest = 1
        if longest == 1 and self.chance(1, 1) <= least:
            return ()
        found: dict[tuple[int, ...], Continuation] = {}
        for length in range(longest, 0, -1):
            if self.chance(length, 1) <= least:
                continue
            for place in self._places(length):
                if len(found) == _MOST_MATCHES:
                    break
                followed = tuple(self.token_ids[place : place + depth])
                if followed not in found:
                    found[followed] = Continuation(followed, length)
        self._offered = tuple(found.values())
        return self._offered

    def _places(self, length: int) -> Iterator[int]:
        """The places right behind earlier occurrences of the last tokens, the latest first."""
        end = len(self._bytes) - _ITEMSIZE  # the text's end itself has nothing behind it
        pattern = self._bytes[-length * _ITEMSIZE :]
        while (at := self._bytes.rfind(pattern, 0, end)) >= 0:
            if at % _ITEMSIZE == 0:
                yield at // _ITEMSIZE + length
            end = at + len(pattern) - 1

    def weighted(
        self, continuations: Sequence[Continuation], least: float = 0.0
    ) -> dict[tuple[int, ...], float]:
        """The beginnings of continuations, each with the chance that all of it is right.

        Args:
            continuations: What was found.
            least: Beginnings that aren't worth more are left out.
        """
        values: dict[tuple[int, ...], float] = {}
        for token_ids, length in continuations:
            for depth in range(1, len(token_ids) + 1):
                chance = self.chance(length, depth)
                if chance <= least:  # a longer one is worth still less
                    break
                path = token_ids[:depth]
                values[path] = max(values.get(path, 0.0), chance)
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
