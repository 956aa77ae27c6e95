"""What a model said, and where in it the same few tokens stand.

All answers lie behind each other in one array. For contexts of each of three sizes a table says
where one stands last, and a second array where it stood before that: adding an answer takes as long
as it has tokens, and finding what followed a context takes no longer in a long text than in a short
one.

Sources: REST (He et al. 2024), section 3, for drafts out of a store of texts; Ziv and Lempel (1977)
as zlib has it, for the chains.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIZES = (8, 4, 2)  # tokens of a context, the longest first: what follows a long one is surest
LONGEST = SIZES[0]
_MOST_PLACES = 4  # that are told of a context
_MOST_TRIED = 8  # contexts may share a slot
_FIRST_BITS = 12
_STEP, _SPREAD, _WORD = 0x2545F4914F6CDD1D, 0x9E3779B97F4A7C15, (1 << 64) - 1
_END = array("i", [-1])  # no token: behind every answer


class AnswerText(NamedTuple):
    """A text that a model wrote.

    Attributes:
        number: Its name.
        start: How many of its tokens were there before the model wrote.
        token_ids: All of them. int32
    """

    number: int
    start: int
    token_ids: array[int]


class SuffixMatch(NamedTuple):
    """Where a context stood before.

    Attributes:
        kind: Which of `SIZES` was found, counted from the longest.
        places: The places right behind it, the latest first; there is a token at each.
    """

    kind: int
    places: list[int]


class SuffixIndex:
    """Answers, and an index of their contexts.

    Attributes:
        token_ids: All answers. int32
    """

    def __init__(self) -> None:
        self.token_ids = array("i")
        self._numbers: list[int] = []
        self._begins: list[int] = []
        self._starts: list[int] = []
        self._bits = _FIRST_BITS
        self._chains = [_Chains(size, self._bits) for size in SIZES]

    @property
    def numbers(self) -> frozenset[int]:
        """Names of the answers."""
        return frozenset(self._numbers)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return 4 * len(self.token_ids) + sum(chains.nbytes for chains in self._chains)

    def add(self, answer: AnswerText) -> None:
        """Take an answer; it counts as the latest."""
        self._append(answer)
        if len(self.token_ids) > 1 << self._bits:
            self._rebuild(self._answers())

    def remove(self, numbers: Collection[int]) -> None:
        """Forget answers."""
        self._rebuild([one for one in self._answers() if one.number not in numbers])

    def answer_at(self, place: int) -> int:
        """The number of the answer that a place belongs to."""
        return self._numbers[bisect_right(self._begins, place) - 1]

    def behind(self, recent: array[int]) -> SuffixMatch | None:
        """Where the longest known context stood that some tokens end with; None where none did.

        Args:
            recent: The last tokens; more than `LONGEST` don't matter. int32
        """
        for kind, chains in enumerate(self._chains):
            if len(recent) >= chains.size:
                places = chains.find(self.token_ids, recent[-chains.size :])
                if places:
                    return SuffixMatch(kind, places)
        return None

    def _append(self, answer: AnswerText) -> None:
        begin = len(self.token_ids)
        self._numbers.append(answer.number)
        self._begins.append(begin)
        self._starts.append(answer.start)
        self.token_ids += answer.token_ids
        self.token_ids += _END
        ids = np.array(answer.token_ids, dtype=np.uint64)
        for chains in self._chains:
            chains.add(ids, begin, max(answer.start, chains.size))

    def _answers(self) -> list[AnswerText]:
        ends = [*self._begins[1:], len(self.token_ids)]
        spans = zip(self._numbers, self._starts, self._begins, ends, strict=True)
        return [
            AnswerText(number, start, self.token_ids[begin : end - 1])
            for number, start, begin, end in spans
        ]

    def _rebuild(self, answers: Sequence[AnswerText]) -> None:
        num_places = sum(len(one.token_ids) + 1 for one in answers)
        self.token_ids = array("i")
        self._numbers, self._begins, self._starts = [], [], []
        self._bits = max(_FIRST_BITS, (2 * num_places).bit_length())
        self._chains = [_Chains(size, self._bits) for size in SIZES]
        for answer in answers:
            self._append(answer)


class _Chains:
    """Contexts of one size.

    Attributes:
        size: Their tokens.
    """

    def __init__(self, size: int, bits: int) -> None:
        self.size = size
        self._shift = 64 - bits
        self._latest = array("i", [-1]) * (1 << bits)  # by slot: the last place behind a context
        self._before = array("i")  # by place: the one before it of the same slot

    @property
    def nbytes(self) -> int:
        return 4 * (len(self._latest) + len(self._before))

    def add(self, ids: NDArray[np.uint64], begin: int, first: int) -> None:
        """Take an answer that lies at `begin`: the places from its `first` token on."""
        before = np.full(len(ids) + 1, -1, dtype=np.int32)  # one more: the end
        places = np.arange(first, len(ids))
        if len(places):
            slots = self._slots(ids, places)
            order = np.argsort(slots, kind="stable")
            slots, places = slots[order], places[order]
            is_first = np.append(True, slots[1:] != slots[:-1])
            latest = np.frombuffer(self._latest, dtype=np.int32)
            earlier = np.append(0, places[:-1] + begin)
            before[places] = np.where(is_first, latest[slots], earlier)
            is_last = np.append(is_first[1:], True)
            latest[slots[is_last]] = places[is_last] + begin
        self._before.frombytes(before.tobytes())

    def find(self, token_ids: array[int], context: array[int]) -> list[int]:
        """The places right behind a context, the latest first."""
        key, size = 0, self.size
        for token_id in context:
            key = key * _STEP + token_id
        place = self._latest[(key * _SPREAD & _WORD) >> self._shift]
        found: list[int] = []
        for _ in range(_MOST_TRIED):
            if place < 0 or len(found) == _MOST_PLACES:
                break
            if token_ids[place - size : place] == context:
                found.append(place)
            place = self._before[place]
        return found

    def _slots(self, ids: NDArray[np.uint64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        keys = np.zeros(len(places), dtype=np.uint64)
        for back in range(self.size, 0, -1):
            keys = keys * np.uint64(_STEP) + ids[places - back]
        return (keys * np.uint64(_SPREAD) >> np.uint64(self._shift)).astype(np.int64)
