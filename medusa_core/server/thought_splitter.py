"""Thoughts apart from what is said, while an answer is being written."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from medusa_core.chats.partial_match import partial_match_length
from medusa_core.chats.thinking import CLOSE, OPEN


class _Place(Enum):
    """Where in an answer its end stands."""

    LEAD = 0  # it may still become a thought
    THOUGHT = 1
    GAP = 2  # between the thought and the answer
    ANSWER = 3


class ThoughtSplitter:
    """Takes an answer in pieces; what may become a mark with the next one is held back.

    Attributes:
        is_thinking: What comes next is thought.
    """

    def __init__(self, begins_inside: bool) -> None:
        """Split one answer.

        Args:
            begins_inside: The prompt ended with the mark of a thought.
        """
        self._place = _Place.LEAD
        self._begins_inside = begins_inside
        self._held = ""

    @property
    def is_thinking(self) -> bool:
        is_inside = self._place is _Place.LEAD and self._begins_inside
        return is_inside or self._place is _Place.THOUGHT

    def push(self, text: str) -> Iterator[tuple[str, bool]]:
        """More of the answer.

        Yields:
            Text that is settled, and whether it is thought.
        """
        self._held += text
        if self._place is _Place.LEAD:
            self._open()
        if self._place is _Place.THOUGHT:
            yield from self._think()
        if self._place is _Place.GAP:
            self._held = self._held.lstrip()
            self._place = _Place.ANSWER if self._held else _Place.GAP
        if self._place is _Place.ANSWER and self._held:
            yield self._take(len(self._held)), False

    def finish(self) -> Iterator[tuple[str, bool]]:
        """The answer is complete.

        Yields:
            As `push`.
        """
        if self._held:
            is_thought = self.is_thinking
            yield self._take(len(self._held)), is_thought

    def _open(self) -> None:
        begin = self._held.lstrip()
        if begin.startswith(OPEN):
            self._held = begin[len(OPEN) :]
            self._place = _Place.THOUGHT
        elif begin and not OPEN.startswith(begin):
            self._place = _Place.THOUGHT if self._begins_inside else _Place.ANSWER

    def _think(self) -> Iterator[tuple[str, bool]]:
        thought, mark, rest = self._held.partition(CLOSE)
        if mark:
            self._held, self._place = rest, _Place.GAP
            if thought:
                yield thought, True
            return
        num_settled = len(self._held) - partial_match_length(self._held, CLOSE)
        if num_settled:
            yield self._take(num_settled), True

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken
