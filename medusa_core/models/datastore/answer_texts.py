"""Answers behind each other in one suffix array, each under its number."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import NamedTuple

from medusa_core.models.datastore.suffix_array import SuffixArray


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


class AnswerTexts:
    """What a model said.

    Attributes:
        array: All of it, and what followed which words.
    """

    def __init__(self) -> None:
        self.array = SuffixArray()
        self._numbers: list[int] = []
        self._begins: list[int] = []  # the place of each one's first token
        self._starts: list[int] = []

    @property
    def numbers(self) -> frozenset[int]:
        """Names of the answers."""
        return frozenset(self._numbers)

    def add(self, answers: Iterable[AnswerText]) -> None:
        """Take answers."""
        for number, start, token_ids in answers:
            self.array.begin(token_ids, start)
            self._numbers.append(number)
            self._begins.append(len(self.array) - len(token_ids))
            self._starts.append(start)

    def remove(self, numbers: Collection[int]) -> None:
        """Forget answers."""
        kept = [one for one in self._answers() if one.number not in numbers]
        self.array = SuffixArray()
        self._numbers, self._begins, self._starts = [], [], []
        self.add(kept)

    def answer_at(self, place: int) -> int:
        """The number of the answer that a place belongs to."""
        return self._numbers[bisect_right(self._begins, place) - 1]

    def _answers(self) -> list[AnswerText]:
        ends = [*(begin - 1 for begin in self._begins[1:]), len(self.array)]
        spans = zip(self._numbers, self._starts, self._begins, ends, strict=True)
        return [
            AnswerText(number, start, self.array.tokens(begin, end))
            for number, start, begin, end in spans
        ]
