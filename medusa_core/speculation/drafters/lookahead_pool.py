"""The n-grams that lookahead decoding keeps: those found last behind each token.

Source: lookahead decoding (Fu et al. 2024), section 3.2.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

MOST_FIRSTS = 4096  # first tokens whose n-grams are kept; those found least lately go

Tail = tuple[int, ...]


class LookaheadPool:
    """N-grams by their first token, of each first token a few; what comes again is the latest."""

    def __init__(self, most: int) -> None:
        """Keep at most so many n-grams behind one token."""
        self._most = most
        self._tails: OrderedDict[int, OrderedDict[Tail, int]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._tails.values()))

    def add(self, ngram: Sequence[int], length: int) -> None:
        """Keep an n-gram.

        Args:
            ngram: Its tokens.
            length: Tokens that were decided when it was found.
        """
        first, tail = ngram[0], tuple(ngram[1:])
        tails = self._tails.setdefault(first, OrderedDict())
        self._tails.move_to_end(first)
        tails[tail] = min(length, tails.get(tail, length))
        tails.move_to_end(tail)
        if len(tails) > self._most:
            tails.popitem(last=False)
        if len(self._tails) > MOST_FIRSTS:
            self._tails.popitem(last=False)

    def behind(self, first: int) -> list[Tail]:
        """What was found to follow a token, the latest first."""
        return list(reversed(self._tails.get(first, ())))

    def forget(self, length: int) -> None:
        """Forget what was found behind more decided tokens than so many."""
        for first, tails in list(self._tails.items()):
            for tail in [tail for tail, found in tails.items() if found > length]:
                del tails[tail]
            if not tails:
                del self._tails[first]
