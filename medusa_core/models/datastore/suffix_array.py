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
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEPTH = 24  # tokens of the longest context
END = -1  # no token: before every text
_MOST_ASIDE = 4  # places that are looked at on either side of a context's own
_FEW, _PART = 8, 8  # so many new places are put in one by one, and such a part of all at once
_BYTES, _BITS = 4, 32
_SIZE = DEPTH * _BYTES
_FIRST, _STEPS = 3, (3, 6, 12)  # tokens of contexts that are sorted first, and by which they grow
_TOKEN_BITS = 21  # in which any token of a vocabulary differs from others, and from `END`


class Occurrence(NamedTuple):
    """A place where a context stood.

    Attributes:
        place: The place right behind it.
        length: How many of its last tokens stood there, from 1 to `DEPTH`.
        token_id: What followed.
    """

    place: int
    length: int
    token_id: int


class SuffixArray:
    """Texts and the order of their places.

    Each text has `END` before it; a place is a token's, counted over all texts.
    """

    def __init__(self) -> None:
        self._text = bytearray(array("i", [END] * DEPTH).tobytes())  # int32
        self._order = array("i")
        self._new: list[int] = []  # places that aren't in the order yet

    def __len__(self) -> int:
        return len(self._text) // _BYTES - DEPTH

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return len(self._text) + _BYTES * len(self._order)

    def tokens(self, start: int, end: int) -> array[int]:
        """The tokens at some places. int32"""
        return array("i", self._text[(start + DEPTH) * _BYTES : (end + DEPTH) * _BYTES])

    @property
    def tail(self) -> bytes:
        """The last `DEPTH` tokens. int32"""
        return bytes(self._text[-_SIZE:])

    def extend(self, token_ids: Sequence[int], first: int = 0) -> None:
        """Let the last text go on.

        Args:
            token_ids: Its next tokens.
            first: Those before this one are context alone: nobody wants to know that they followed.
        """
        place = len(self)
        self._text += array("i", token_ids).tobytes()
        self._new += range(place + first, place + len(token_ids))

    def begin(self, token_ids: Sequence[int], first: int) -> None:
        """Begin another text; see `extend`."""
        self._text += array("i", [END]).tobytes()
        self.extend(token_ids, first)

    def truncate(self, length: int) -> None:
        """Forget the tokens from the place `length` on."""
        if length < len(self):
            del self._text[(length + DEPTH) * _BYTES :]
            order = np.frombuffer(self._order, np.int32)
            self._order = array("i", order[order < length].tobytes())
            self._new = [place for place in self._new if place < length]

    def behind(self, tail: bytes) -> list[Occurrence]:
        """Where the contexts stood that are most like the one behind which some tokens end.

        Args:
            tail: The last `DEPTH` tokens, or more. int32

        Returns:
            Those at least half as long as the longest, in no order; none if nothing is known.
        """
        self._settle()
        wanted = int.from_bytes(tail[-_SIZE:], "little")
        order, context = self._order, self._context
        at = bisect_right(order, wanted, key=context)
        below, above = order[max(0, at - _MOST_ASIDE) : at], order[at : at + _MOST_ASIDE]
        below.reverse()
        found: list[Occurrence] = []
        nearest = (_common(context(side[0]), wanted) for side in (below, above) if side)
        least = max(1, max(nearest, default=0) + 1 >> 1)
        for side in (below, above):
            for place in side:
                length = _common(context(place), wanted)
                if length < least:
                    break
                found.append(Occurrence(place, length, self.token_at(place)))
        return found

    def after(self, found: Iterable[Occurrence], token_id: int) -> list[Occurrence]:
        """Which occurrences go on with a token, as those of the context that is longer by it."""
        most = len(self)
        return [
            Occurrence(place + 1, min(DEPTH, length + 1), following)
            for place, length, here in found
            if here == token_id
            and place + 1 < most
            and (following := self.token_at(place + 1)) != END
        ]

    def token_at(self, place: int) -> int:
        """The token at a place."""
        start = (place + DEPTH) * _BYTES
        return int.from_bytes(self._text[start : start + _BYTES], "little", signed=True)

    def _context(self, place: int) -> int:
        """What stands before a place, as a number whose first bits are the last token."""
        start = place * _BYTES
        return int.from_bytes(self._text[start : start + _SIZE], "little")

    def _settle(self) -> None:
        """Put new places into the order."""
        if not self._new:
            return
        new, self._new = self._new, []
        if len(new) < _FEW:
            for place in new:
                at = bisect_right(self._order, self._context(place), key=self._context)
                self._order.insert(at, place)
        elif len(new) * _PART < len(self._order):
            new.sort(key=self._context)
            at = [bisect_right(self._order, self._context(p), key=self._context) for p in new]
            order = np.insert(np.frombuffer(self._order, np.int32), at, new)
            self._order = array("i", order.tobytes())
        else:
            self._order += array("i", new)
            self._sort()

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


def _common(one: int, other: int) -> int:
    """How many last tokens two contexts share."""
    return DEPTH - ((one ^ other).bit_length() + _BITS - 1) // _BITS
