"""Does drafting pay? Decided from the steps of answers while they are decoded.

The net speed-up is tokens per step × the time of a plain step ÷ the time of a step. Where it stays
too low, plain decoding takes over for a while, and drafts are tried again later.
"""

from __future__ import annotations

from collections import deque

WORTHWHILE = 1.05
_WINDOW = 48  # steps that are judged together
_FIRST_REST = 128  # plain steps before drafts are tried again; twice as many every time
_LONGEST_REST = 2048
_TRIAL = 24  # steps of a new try
_NEWEST = 0.1  # weight of the last plain step in what a plain step takes


class Governor:
    """Watches the answers of one kind, one after the other.

    Attributes:
        num_rested: Steps decoded plainly because drafts didn't pay, in all answers.
        speed_up: The last judged net speed-up, or None.
        plain_step_s: Seconds of a step of plain decoding; what is measured corrects it.
    """

    def __init__(self, plain_step_s: float) -> None:
        self.num_rested = 0
        self.speed_up: float | None = None
        self.plain_step_s = plain_step_s
        self._steps: deque[tuple[int, float]] = deque(maxlen=_WINDOW)
        self._needed = _WINDOW
        self._rest = _FIRST_REST
        self._left = 0

    @property
    def drafts(self) -> bool:
        """Should the next step draft?"""
        return self._left == 0

    def add(self, num_tokens: int, step_s: float) -> None:
        """Hear of a step.

        Args:
            num_tokens: Tokens that it gave.
            step_s: Seconds that it took.
        """
        if self._left:
            self._left -= 1
            self.num_rested += 1
            self.plain_step_s += _NEWEST * (step_s - self.plain_step_s)
            return
        self._steps.append((num_tokens, step_s))
        if len(self._steps) < self._needed:
            return
        tokens, seconds = (sum(column) for column in zip(*self._steps, strict=True))
        self.speed_up = tokens * self.plain_step_s / seconds
        if self.speed_up >= WORTHWHILE:
            self._needed = _WINDOW
            return
        self._left = self._rest
        self._rest = min(2 * self._rest, _LONGEST_REST)
        self._needed = _TRIAL
        self._steps.clear()
