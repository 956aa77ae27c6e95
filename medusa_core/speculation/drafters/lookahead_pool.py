"""N-gram pool of lookahead decoding: the latest n-grams of each first token.

Source: lookahead decoding (Fu et al. 2024), section 3.2.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

MAX_FIRSTS = 4096  # first tokens with n-grams; the least recently used are dropped

Tail = tuple[int, ...]


class LookaheadPool:
    """N-grams by first token, a few of each, in least-recently-used order."""

    def __init__(self, max_tails: int) -> None:
        """Keep at most `max_tails` n-grams of each first token."""
        self._max_tails = max_tails
        self._tails: OrderedDict[int, OrderedDict[Tail, int]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._tails.values()))

    def add(self, ngram: Sequence[int], length: int) -> None:
        """Add an n-gram.

        Args:
            ngram: Its tokens.
            length: Number of decided tokens when it was found.
        """
        first, tail = ngram[0], tuple(ngram[1:])
        tails = self._tails.setdefault(first, OrderedDict())
        self._tails.move_to_end(first)
        tails[tail] = min(length, tails.get(tail, length))
        tails.move_to_end(tail)
        if len(tails) > self._max_tails:
            tails.popitem(last=False)
        if len(self._tails) > MAX_FIRSTS:
            self._tails.popitem(last=False)

    def tails(self, first: int) -> list[Tail]:
        """The n-grams of a first token without it, the latest first."""
        return list(reversed(self._tails.get(first, ())))

    def forget(self, length: int) -> None:
        """Drop n-grams found after more than `length` decided tokens."""
        for first, tails in list(self._tails.items()):
            for tail in [tail for tail, found in tails.items() if found > length]:
                del tails[tail]
            if not tails:
                del self._tails[first]
