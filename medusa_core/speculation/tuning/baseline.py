"""Seconds of plain steps under the conditions of one answer, to compare its speed with."""

from __future__ import annotations

import statistics
from collections import deque

from medusa_core.speculation.tuning.step_costs import StepCosts

_MIN_PLAIN_STEPS = 8
_MAX_STEPS = 128
_SAME_LOAD = 1.2  # a larger ratio means that another program took the processor


class Baseline:
    """Steps of one answer, compared with the costs measured before it."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, int, float]] = deque(maxlen=_MAX_STEPS)
        self._plain: deque[tuple[int, float]] = deque(maxlen=_MAX_STEPS)

    def add(self, num_rows: int, length: int, verify_s: float, step_s: float) -> None:
        """Add a step that didn't share its pass.

        Args:
            num_rows: Rows of its tree.
            length: Number of cached rows.
            verify_s: Seconds of verification and acceptance.
            step_s: Seconds of the whole step.
        """
        self._steps.append((num_rows, length, verify_s))
        if num_rows == 1:
            self._plain.append((length, step_s))

    @property
    def has_plain_steps(self) -> bool:
        """Whether the answer has enough plain steps of its own."""
        return len(self._plain) >= _MIN_PLAIN_STEPS

    def plain_s(self, costs: StepCosts | None, length: int) -> float:
        """Seconds of a plain step after `length` cached rows; 0 if unknown.

        It is the median of the answer's own plain steps, scaled to the length by the measured
        costs. Without such steps it is the measured cost, provided that the answer's steps took
        about as long as measured: otherwise the computer was busy either then or now.
        """
        if self.has_plain_steps:
            return statistics.median(
                seconds * (costs.plain_s(length) / costs.plain_s(cached) if costs else 1.0)
                for cached, seconds in self._plain
            )
        if costs is None or not self._steps:
            return 0.0
        actual_s = sum(seconds for _, _, seconds in self._steps)
        expected_s = sum(costs.step_s(rows, cached) for rows, cached, _ in self._steps)
        has_same_load = expected_s / _SAME_LOAD <= actual_s <= expected_s * _SAME_LOAD
        return costs.plain_s(length) if has_same_load else 0.0
