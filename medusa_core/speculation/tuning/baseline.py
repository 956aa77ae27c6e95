"""What plain decoding takes, measured close enough to an answer for the two to be compared."""

from __future__ import annotations

import statistics
from collections import deque

from medusa_core.speculation.tuning.costs import StepCosts

_LEAST_PLAIN = 8
_MOST_STEPS = 128
_AS_LOADED = 1.2  # beyond this, another program takes or took the processor


class Baseline:
    """The steps of one answer, beside what was measured before it."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, int, float]] = deque(maxlen=_MOST_STEPS)
        self._plain: deque[tuple[int, float]] = deque(maxlen=_MOST_STEPS)

    def add(self, num_rows: int, length: int, verified_s: float, step_s: float) -> None:
        """Count a step that had the device for itself.

        Args:
            num_rows: Its rows.
            length: Committed rows of the cache.
            verified_s: Seconds of its verification and acceptance.
            step_s: Seconds of all of it.
        """
        self._steps.append((num_rows, length, verified_s))
        if num_rows == 1:
            self._plain.append((length, step_s))

    @property
    def has_plain_steps(self) -> bool:
        """Whether the answer itself had plain steps enough to compare with."""
        return len(self._plain) >= _LEAST_PLAIN

    def plain_s(self, costs: StepCosts | None, length: int) -> float:
        """Seconds of a plain step behind a cache of some length; 0 where that can't be said.

        It is what plain steps of the answer itself took, where there were some; a longer cache
        takes longer, by as much as was measured before. Otherwise it is what was measured before,
        as long as the answer's steps took about as long as such steps did then: else the machine
        was busy with something else in one of the two.
        """
        if self.has_plain_steps:
            return statistics.median(
                seconds * (costs.plain_s(length) / costs.plain_s(behind) if costs else 1.0)
                for behind, seconds in self._plain
            )
        if costs is None or not self._steps:
            return 0.0
        took = sum(seconds for _, _, seconds in self._steps)
        would = sum(costs.step_s(rows, behind) for rows, behind, _ in self._steps)
        is_as_loaded = would / _AS_LOADED <= took <= would * _AS_LOADED
        return costs.plain_s(length) if is_as_loaded else 0.0
