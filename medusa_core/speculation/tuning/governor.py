"""Governor: pauses drafting while it isn't profitable.

The net speed-up is tokens per step × the time of a plain step ÷ the time of a step. While it is too
low, answers are decoded plainly, and drafting is tried again later.

It is judged after every few tokens by what is likelier, not by what is certain: with the variance
of real drafts, a loss of a tenth is certain only after hundreds of tokens, while a pause by mistake
costs little, as it is short. Evidence is kept from trial to trial, and pauses grow with it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

MIN_SPEED_UP = 0.99  # a drafter that hardly costs anything may find more in the next answer
FIRST_PROBE = 3  # plain steps that are measured before drafts are tried for the first time
_JUDGED_TOKENS = 10  # drafting is judged whenever it has yielded so many
_PROBE = 8  # plain steps that are measured before drafting is paused
_PRIOR_STEPS, _PRIOR_SPEED_UP = 6.0, 1.06  # assumed before anything is known
_KEPT = 1 - 1 / 256  # weight of a step after the next one, so that older ones fade
_KEPT_BY_PAUSE = 0.5  # weight of all steps after a pause
_DOUBTFUL = 0.95  # after a lower speed-up in earlier runs, drafting begins paused
_FIRST_PAUSE = 24  # plain steps; each pause is longer, most after clear losses
_MAX_PAUSE = 512  # so that answers of another kind aren't missed for long
_INTERRUPTED = 5.0  # times the median step: the computer was busy with something else

_Step = tuple[int, float]  # tokens, and duration in expected plain steps


class Governor:
    """Judges the steps of one kind of answers, one answer after the other.

    All steps take longer while other programs run. So before the first drafts, and whenever drafts
    seem unprofitable, a few plain steps are measured, and only the comparison with these counts:
    the first decision is made within 24 tokens. Durations are divided by what a plain step should
    take at the answer's length, so that steps of long and short conversations can be compared.

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
        self._prior_speed_up = max(_PRIOR_SPEED_UP, prior_speed_up or 0.0)
        self._prior_steps = _PRIOR_STEPS  # fades as steps do
        self._steps: list[_Step] = []  # since the last judgement
        self._num_steps = self._tokens = self._duration = 0.0  # sums over judged steps
        self._plain: list[float] = []
        self._pause = _FIRST_PAUSE
        self._left = self._wanted = 0
        if prior_speed_up is None:
            self._left = self._wanted = FIRST_PROBE
        elif prior_speed_up < _DOUBTFUL:
            self._left, self._wanted = _FIRST_PAUSE, FIRST_PROBE

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
        duration = step_s / self.expected_s
        if self._left == 0:
            self._steps.append((num_tokens, duration))
            if sum(tokens for tokens, _ in self._steps) >= _JUDGED_TOKENS:
                self._judge()
            return
        self._left -= 1
        self.num_plain_steps += 1
        if len(self._plain) < self._wanted:
            self._plain.append(duration)
            if len(self._plain) == self._wanted:
                self._compare()

    def _judge(self) -> None:
        """Add the last steps to the evidence; measure plain steps next if drafts seem to lose."""
        for num_tokens, duration in _uninterrupted(self._steps):
            self._decay(_KEPT)
            self._num_steps += 1
            self._tokens += num_tokens
            self._duration += duration
        self._steps.clear()
        if self._is_profitable():
            self._pause = _FIRST_PAUSE
        else:
            self._plain.clear()
            self._left = self._wanted = _PROBE

    def _compare(self) -> None:
        """Judge again, by the plain steps just measured."""
        # The median, as the first plain step after a prompt takes longer.
        self._slowdown = statistics.median(self._plain)
        if not self._num_steps or self._is_profitable():
            return
        assert self.speed_up is not None  # just judged
        # As if steps differed by a token.
        is_clear = (MIN_SPEED_UP - self.speed_up) * math.sqrt(self._num_steps) > 1
        self._left = self._pause
        self._pause = min((4 if is_clear else 2) * self._pause, _MAX_PAUSE)
        self._decay(_KEPT_BY_PAUSE)

    def _decay(self, factor: float) -> None:
        """Multiply the weight of all steps seen so far by a factor."""
        self._num_steps *= factor
        self._tokens *= factor
        self._duration *= factor
        self._prior_steps *= factor

    def _is_profitable(self) -> bool:
        """Whether drafting is likely to be faster than plain decoding; updates `speed_up`."""
        # Sums, not medians: steps of many rows are long, and yield most tokens.
        tokens = self._tokens + self._prior_steps * self._prior_speed_up
        duration = self._duration + self._prior_steps * self._slowdown
        self.speed_up = tokens * self._slowdown / duration
        return self.speed_up >= MIN_SPEED_UP


def _uninterrupted(steps: Sequence[_Step]) -> Sequence[_Step]:
    """Steps without interrupted ones, which say nothing about drafts."""
    longest = _INTERRUPTED * statistics.median(duration for _, duration in steps)
    return [step for step in steps if step[1] <= longest]
