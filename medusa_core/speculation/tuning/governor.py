"""Governor: pauses drafting while it isn't profitable.

The net speed-up is tokens per step × the time of a plain step ÷ the time of a step. While it is too
low, answers are decoded plainly, and drafting is tried again later.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

MIN_SPEED_UP = 1.05
FIRST_PROBE = 5  # plain steps that are measured before drafts are tried for the first time
_WINDOW = 96  # steps that are judged together: more than those of one hard answer
_EARLY_CHECKS = (6, 12, 24, 48)  # numbers of steps after which a clear loss is detected
_STANDARD_ERRORS = 2.0  # by which a loss must be clear
_DOUBTFUL = 0.95  # after a lower speed-up in earlier runs, drafting begins paused
_PROBE = 16  # plain steps that are measured before drafting is paused
_FIRST_PAUSE = 32  # plain steps; each pause is longer, most after clear losses
_MAX_PAUSE = 512  # so that answers of another kind aren't missed for long
_TRIAL = 48  # steps of a new trial
_INTERRUPTED = 5.0  # times the median step: the computer was busy with something else

_Step = tuple[int, float]  # tokens and seconds


class Governor:
    """Judges the steps of one kind of answers, one answer after the other.

    All steps take longer while other programs run. So before the first drafts, and whenever drafts
    seem unprofitable, a few plain steps are measured, and only the comparison with these counts.

    Attributes:
        num_plain_steps: Plain steps while drafting was paused, in all answers.
        speed_up: The last judged net speed-up, or None.
        expected_s: Seconds of a plain step as measured by calibration, at the answer's length.
    """

    def __init__(self, expected_s: float, prior_speed_up: float | None = None) -> None:
        """Start judging.

        Args:
            expected_s: Seconds of a plain step.
            prior_speed_up: The net speed-up of earlier runs; None if unknown.
        """
        self.num_plain_steps = 0
        self.speed_up: float | None = None
        self.expected_s = expected_s
        self._slowdown = 1.0  # of plain steps over expected_s
        self._steps: list[_Step] = []
        self._plain: list[float] = []
        self._needed = _WINDOW
        self._pause = _FIRST_PAUSE
        self._left = self._wanted = 0
        if prior_speed_up is None:
            self._left = self._wanted = FIRST_PROBE
        elif prior_speed_up < _DOUBTFUL:
            self._left, self._wanted, self._needed = _FIRST_PAUSE, FIRST_PROBE, _TRIAL

    @property
    def plain_step_s(self) -> float:
        """Seconds of a plain step, by those measured last."""
        return self._slowdown * self.expected_s

    @property
    def drafts(self) -> bool:
        """Whether the next step drafts."""
        return self._left == 0

    def add(self, num_tokens: int, step_s: float) -> None:
        """Record a step, and decide whether the next one drafts.

        Args:
            num_tokens: Tokens that the step yielded.
            step_s: Duration of the step in seconds.
        """
        if self._left == 0:
            self._steps.append((num_tokens, step_s))
            if len(self._steps) == self._needed:
                self._judge()
            elif len(self._steps) in _EARLY_CHECKS and self._loses_clearly():
                self._probe()
            return
        self._left -= 1
        self.num_plain_steps += 1
        if len(self._plain) < self._wanted:
            self._plain.append(step_s)
            if len(self._plain) == self._wanted:
                self._compare()

    def _judge(self) -> None:
        """Judge a window of steps; none is judged twice, which would find more losses by chance."""
        if self._is_profitable():
            self._steps.clear()
            self._needed, self._pause = _WINDOW, _FIRST_PAUSE
        else:
            self._probe()

    def _loses_clearly(self) -> bool:
        """Whether drafts lose time even if chance was against them."""
        steps = _uninterrupted(self._steps)
        gained_s = [num_tokens * self.plain_step_s - step_s for num_tokens, step_s in steps]
        count, mean = len(gained_s), statistics.mean(gained_s)
        squares = sum((gain - mean) ** 2 for gain in gained_s)
        # As if one step had differed by a token: a few equal steps prove nothing.
        error = math.sqrt(squares + self.plain_step_s**2) / count
        return mean + _STANDARD_ERRORS * error < 0

    def _probe(self) -> None:
        """Measure plain steps next, to compare the last steps with."""
        self._plain.clear()
        self._left = self._wanted = _PROBE

    def _compare(self) -> None:
        """Judge again, by the plain steps just measured."""
        # The median, as the first plain step after a prompt takes longer.
        self._slowdown = statistics.median(self._plain) / self.expected_s
        if not self._steps:
            return
        is_early = len(self._steps) < self._needed
        if self._is_profitable() or (is_early and not self._loses_clearly()):
            self._needed, self._pause = _WINDOW, _FIRST_PAUSE
        else:
            self._left = self._pause
            self._pause = min((4 if is_early else 2) * self._pause, _MAX_PAUSE)
            self._needed = _TRIAL
        self._steps.clear()

    def _is_profitable(self) -> bool:
        """Whether the last steps were faster than plain ones; updates `speed_up`."""
        # Sums, not medians: steps of many rows are long, and yield most tokens.
        tokens, seconds = zip(*_uninterrupted(self._steps), strict=True)
        self.speed_up = sum(tokens) * self.plain_step_s / sum(seconds)
        return self.speed_up >= MIN_SPEED_UP


def _uninterrupted(steps: Sequence[_Step]) -> Sequence[_Step]:
    """Steps without interrupted ones, which say nothing about drafts."""
    longest_s = _INTERRUPTED * statistics.median(step_s for _, step_s in steps)
    return [step for step in steps if step[1] <= longest_s]
