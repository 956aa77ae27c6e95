"""A time limit for repeated waits."""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeBudget:
    """At most so many seconds of waiting in one go; time without waiting gives them back."""

    def __init__(self, most_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_s = self._left_s = most_s
        self._clock = clock
        self._since_s = clock()

    def begin(self) -> float:
        """Begin to wait; returns the seconds that are left for it."""
        now_s = self._clock()
        self._left_s = min(self._most_s, self._left_s + now_s - self._since_s)
        self._since_s = now_s
        return self._left_s

    def end(self) -> None:
        """The wait is over."""
        now_s = self._clock()
        self._left_s = max(0.0, self._left_s - (now_s - self._since_s))
        self._since_s = now_s
