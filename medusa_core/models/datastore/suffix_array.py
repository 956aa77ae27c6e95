"""A suffix array of reversed contexts: find where the last tokens occurred before.

All positions of the texts are sorted by the tokens before them, the nearest token first, so that
neighbours share the longest contexts. `DEPTH` tokens count. Adding a token and finding a context
take a binary search each.

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
END = -1  # precedes every text
_NEIGHBOURS = 4  # positions that are compared on either side of a context's own
_FEW = 8  # fewer new positions are inserted one by one
_MERGED_SHARE = 8  # if new positions are at least 1/8 of the old ones, all are sorted again
_BYTES, _BITS = 4, 32
_FIRST, _STEPS = 3, (3, 6, 12)  # tokens that are sorted by first, then added by doubling
_TOKEN_BITS = 21  # enough to tell all tokens of a vocabulary, and `END`, apart


class Found(NamedTuple):
    """Earlier occurrences of a context.

    Attributes:
        places: Positions of the tokens that followed.
        lengths: Number of matching tokens before each, from 1 to `DEPTH`.
        token_ids: Tokens that followed the occurrences.
    """

    places: list[int]
    lengths: list[int]
    token_ids: list[int]


NO_MATCHES = Found([], [], [])


class SuffixArray:
    """Texts, and their positions sorted by context.

    `END` precedes each text; positions count the tokens of all texts.
    """

    def __init__(self) -> None:
        self._text = array("i", [END] * DEPTH)
        self._order = array("i")
        self._new: list[int] = []  # positions that aren't sorted yet

    def __len__(self) -> int:
        return len(self._text) - DEPTH

    @property
    def nbytes(self) -> int:
        """Memory of texts and order."""
        return _BYTES * (len(self._text) + len(self._order))

    def tokens(self, start: int, end: int) -> array[int]:
        """Return the tokens in a range. int32"""
        return self._text[start + DEPTH : end + DEPTH]

    @property
    def tail(self) -> array[int]:
        """Return the last `DEPTH` tokens. int32"""
        return self._text[-DEPTH:]

    def extend(self, token_ids: Sequence[int], first: int = 0) -> None:
        """Append tokens to the last text.

        Args:
            first: Index of the first token that searches may return; earlier ones are context.
        """
        place = len(self)
        self._text.extend(token_ids)
        self._new += range(place + first, place + len(token_ids))

    def add_text(self, token_ids: Sequence[int], first: int) -> None:
        """Append a separate text; see `extend`."""
        self._text.append(END)
        self.extend(token_ids, first)

    def truncate(self, length: int) -> None:
        """Remove the tokens from position `length` on."""
        if length < len(self):
            del self._text[length + DEPTH :]
            order = np.frombuffer(self._order, np.int32)
            self._order = array("i", order[order < length].tobytes())
            self._new = [place for place in self._new if place < length]

    def sort_new(self) -> None:
        """Sort new positions; otherwise the next search does."""
        if not self._new:
            return
        new, self._new = self._new, []
        if len(new) < _FEW:
            for place in new:
                at = bisect_right(self._order, self._context(place), key=self._context)
                self._order.insert(at, place)
        elif len(new) * _MERGED_SHARE < len(self._order):
            new.sort(key=self._context)
            ends = [bisect_right(self._order, self._context(one), key=self._context) for one in new]
            order = np.insert(np.frombuffer(self._order, np.int32), ends, new)
            self._order = array("i", order.tobytes())
        else:
            self._order += array("i", new)
            self._sort()

    def search(self, tail: array[int]) -> Found:
        """Find the longest earlier occurrences of the last tokens.

        Args:
            tail: The last `DEPTH` tokens, or more. int32

        Returns:
            Occurrences with matches at least half as long as the longest.
        """
        self.sort_new()
        wanted = int.from_bytes(tail[-DEPTH:].tobytes(), "little")
        order, context = self._order, self._context
        at = bisect_right(order, wanted, key=context)
        places, lengths, least = [], [], 1
        for side in (order[max(0, at - _NEIGHBOURS) : at][::-1], order[at : at + _NEIGHBOURS]):
            for place in side:
                length = DEPTH - ((context(place) ^ wanted).bit_length() + _BITS - 1) // _BITS
                if length < least:
                    break
                least = max(least, length + 1 >> 1)
                places.append(place)
                lengths.append(length)
        if lengths and min(lengths) < least:  # on the side that was compared first
            kept = [at for at, length in enumerate(lengths) if length >= least]
            places, lengths = [places[at] for at in kept], [lengths[at] for at in kept]
        text = self._text
        return Found(places, lengths, [text[place + DEPTH] for place in places])

    def advance(self, matches: Found, token_id: int) -> Found:
        """Return the occurrences of a context followed by a token, given those of the context."""
        text, most = self._text, len(self._text) - DEPTH - 1
        kept = [
            at
            for at, follower in enumerate(matches.token_ids)
            if follower == token_id
            and matches.places[at] < most
            and text[matches.places[at] + DEPTH + 1] != END
        ]
        if not kept:
            return NO_MATCHES
        places = [matches.places[at] + 1 for at in kept]
        lengths = [min(DEPTH, matches.lengths[at] + 1) for at in kept]
        return Found(places, lengths, [text[place + DEPTH] for place in places])

    def _context(self, position: int) -> int:
        """Return the context of a position as an integer, the last token in its highest bits."""
        return int.from_bytes(self._text[position : position + DEPTH].tobytes(), "little")

    def _sort(self) -> None:
        """Sort all positions by their reversed contexts, by prefix doubling."""
        text = np.frombuffer(self._text, np.dtype("<u4")).astype(np.int64) & (1 << _TOKEN_BITS) - 1
        # By the position after a context: its rank among contexts of 3 tokens, then of 6, 12, 24.
        keys = np.zeros(len(text) + 1, np.int64)
        for back in range(1, _FIRST + 1):
            keys = keys << _TOKEN_BITS | _shifted(text, back)
        ranks = np.unique(keys, return_inverse=True)[1]
        for step in _STEPS:
            keys = ranks * len(keys) + _shifted(ranks[:-1], step)
            ranks = np.unique(keys, return_inverse=True)[1]
        places = np.frombuffer(self._order, np.int32)
        order = places[np.argsort(ranks[places + DEPTH], kind="stable")]
        self._order = array("i", order.tobytes())


def _shifted(values: NDArray[np.int64], by: int) -> NDArray[np.int64]:
    """Shift values to the right by `by`, filled with zeros, and append one more."""
    return np.append(np.zeros(by, np.int64), values)[: len(values) + 1]
