"""Texts, and what followed the same words in them before.

All places of the texts are kept sorted by the tokens before them, the nearest token first. What
stood in the most similar contexts then lies side by side: neighbours share the longest context, and
those that share a given one are a range, as below a node of a suffix tree. `DEPTH` tokens count.
Adding a token and finding a context take a binary search.

Sources: Abouelhoda, Kurtz and Ohlebusch, "Replacing suffix trees with enhanced suffix arrays"
(2004); Manber and Myers, "Suffix arrays" (1993), section 3, for sorting by doubling.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEPTH = 24  # tokens of the longest context
END = -1  # no token: before every text
_MOST_ASIDE = 4  # places that are looked at on either side of a context's own
_FEW, _PART = 8, 8  # so many new places are put in one by one, and such a part of all at once
_BYTES, _BITS = 4, 32
_FIRST, _STEPS = 3, (3, 6, 12)  # tokens of contexts that are sorted first, and by which they grow
_TOKEN_BITS = 21  # in which any token of a vocabulary differs from others, and from `END`


class Found(NamedTuple):
    """Where a context stood before: the most similar ones that were found.

    Attributes:
        places: The places right behind it.
        lengths: How many of its last tokens stood before each, from 1 to `DEPTH`.
        token_ids: What followed it at each.
    """

    places: list[int]
    lengths: list[int]
    token_ids: list[int]


NOWHERE = Found([], [], [])


class SuffixArray:
    """Texts and the order of their places.

    Each text has `END` before it; a place is a token's, counted over all texts.
    """

    def __init__(self) -> None:
        self._text = array("i", [END] * DEPTH)
        self._order = array("i")
        self._new: list[int] = []  # places that aren't in the order yet

    def __len__(self) -> int:
        return len(self._text) - DEPTH

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return _BYTES * (len(self._text) + len(self._order))

    def tokens(self, start: int, end: int) -> array[int]:
        """The tokens at some places. int32"""
        return self._text[start + DEPTH : end + DEPTH]

    @property
    def tail(self) -> array[int]:
        """The last `DEPTH` tokens. int32"""
        return self._text[-DEPTH:]

    def extend(self, token_ids: Sequence[int], first: int = 0) -> None:
        """Let the last text go on.

        Args:
            token_ids: Its next tokens.
            first: Those before this one are context alone: nobody wants to know that they followed.
        """
        place = len(self)
        self._text.extend(token_ids)
        self._new += range(place + first, place + len(token_ids))

    def begin(self, token_ids: Sequence[int], first: int) -> None:
        """Begin another text; see `extend`."""
        self._text.append(END)
        self.extend(token_ids, first)

    def truncate(self, length: int) -> None:
        """Forget the tokens from the place `length` on."""
        if length < len(self):
            del self._text[length + DEPTH :]
            order = np.frombuffer(self._order, np.int32)
            self._order = array("i", order[order < length].tobytes())
            self._new = [place for place in self._new if place < length]

    def settle(self) -> None:
        """Put new places into the order; else the next search does."""
        if not self._new:
            return
        new, self._new = self._new, []
        if len(new) < _FEW:
            for place in new:
                at = bisect_right(self._order, self._context(place), key=self._context)
                self._order.insert(at, place)
        elif len(new) * _PART < len(self._order):
            new.sort(key=self._context)
            ends = [bisect_right(self._order, self._context(one), key=self._context) for one in new]
            order = np.insert(np.frombuffer(self._order, np.int32), ends, new)
            self._order = array("i", order.tobytes())
        else:
            self._order += array("i", new)
            self._sort()

    def behind(self, tail: array[int]) -> Found:
        """Where the contexts stood that are most like the one that some tokens end with.

        Args:
            tail: The last `DEPTH` tokens, or more. int32

        Returns:
            Those at least half as long as the longest.
        """
        self.settle()
        wanted = int.from_bytes(tail[-DEPTH:].tobytes(), "little")
        order, context = self._order, self._context
        at = bisect_right(order, wanted, key=context)
        places, lengths, least = [], [], 1
        for side in (order[max(0, at - _MOST_ASIDE) : at][::-1], order[at : at + _MOST_ASIDE]):
            for place in side:
                length = DEPTH - ((context(place) ^ wanted).bit_length() + _BITS - 1) // _BITS
                if length < least:
                    break
                least = max(least, length + 1 >> 1)
                places.append(place)
                lengths.append(length)
        if lengths and min(lengths) < least:  # of the side that was looked at first
            kept = [at for at, length in enumerate(lengths) if length >= least]
            places, lengths = [places[at] for at in kept], [lengths[at] for at in kept]
        text = self._text
        return Found(places, lengths, [text[place + DEPTH] for place in places])

    def after(self, found: Found, token_id: int) -> Found:
        """Which of the places found go on with a token: those of the context with it behind."""
        text, most = self._text, len(self._text) - DEPTH - 1
        kept = [
            at
            for at, here in enumerate(found.token_ids)
            if here == token_id
            and found.places[at] < most
            and text[found.places[at] + DEPTH + 1] != END
        ]
        if not kept:
            return NOWHERE
        places = [found.places[at] + 1 for at in kept]
        lengths = [min(DEPTH, found.lengths[at] + 1) for at in kept]
        return Found(places, lengths, [text[place + DEPTH] for place in places])

    def _context(self, place: int) -> int:
        """What stands before a place, as a number whose first bits are the last token."""
        return int.from_bytes(self._text[place : place + DEPTH].tobytes(), "little")

    def _sort(self) -> None:
        text = np.frombuffer(self._text, np.dtype("<u4")).astype(np.int64) & (1 << _TOKEN_BITS) - 1
        # By the place behind a context, its rank among contexts of 3 tokens, then of 6, 12 and 24.
        keys = np.zeros(len(text) + 1, np.int64)
        for back in range(1, _FIRST + 1):
            keys = keys << _TOKEN_BITS | _moved(text, back)
        ranks = np.unique(keys, return_inverse=True)[1]
        for step in _STEPS:
            keys = ranks * len(keys) + _moved(ranks[:-1], step)
            ranks = np.unique(keys, return_inverse=True)[1]
        places = np.frombuffer(self._order, np.int32)
        order = places[np.argsort(ranks[places + DEPTH], kind="stable")]
        self._order = array("i", order.tobytes())


def _moved(values: NDArray[np.int64], by: int) -> NDArray[np.int64]:
    """Each value so many places later, behind zeros; one more of them than before."""
    return np.append(np.zeros(by, np.int64), values)[: len(values) + 1]
