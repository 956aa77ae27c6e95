"""Decides from the steps of answers, while they are decoded, whether drafting saves time.

The net speed-up is tokens per step × the time of a plain step ÷ the time of a step. Where it stays
too low, plain decoding takes over for a while, and drafts are tried again later.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

WORTHWHILE = 1.05
FIRST_PROBE = 5  # plain steps that are measured before drafts are tried for the first time
_WINDOW = 96  # steps that are judged together: more than one hard answer's
_LOOKS = (6, 12, 24, 48)  # steps after which a clear loss is seen
_ERRORS = 2.0  # standard ones that it is clear by
_DOUBTED = 0.95  # whom the last time found slower than that is tried after a rest
_PROBE = 16  # plain steps that are measured before drafts are let go
_FIRST_REST = 32  # plain steps before drafts are tried again; ever more, most after clear losses
_LONGEST_REST = 512  # so that answers of another kind aren't missed for long
_TRIAL = 48  # steps of a new try
_A_PAUSE = 5.0  # times as long as other steps

_Step = tuple[int, float]  # tokens that it gave, and seconds


class Governor:
    """Watches the answers of one kind, one after the other.

    A step takes longer while other programs are busy, plain ones too. So where nothing is known
    yet, and where drafts seem not to pay, a few plain steps are measured right then, and only that
    comparison counts.

    Attributes:
        num_rested: Steps decoded plainly, in all answers.
        speed_up: The last judged net speed-up, or None.
        expected_s: Seconds of a step of plain decoding as measured beforehand, behind as many
            tokens as the answer has.
    """

    def __init__(self, expected_s: float, pace: float | None = None) -> None:
        """Begin.

        Args:
            expected_s: Seconds of a step of plain decoding.
            pace: The net speed-up of the last time; None where it isn't known.
        """
        self.num_rested = 0
        self.speed_up: float | None = None
        self.expected_s = expected_s
        self._slowness = 1.0  # of plain steps now, over what is expected
        self._steps: list[_Step] = []
        self._plain: list[float] = []
        self._needed = _WINDOW
        self._rest = _FIRST_REST
        self._left = self._wanted = 0
        if pace is None:
            self._left = self._wanted = FIRST_PROBE
        elif pace < _DOUBTED:
            self._left, self._wanted, self._needed = _FIRST_REST, FIRST_PROBE, _TRIAL

    @property
    def plain_step_s(self) -> float:
        """Seconds of a step of plain decoding, as the last ones that were measured took."""
        return self._slowness * self.expected_s

    @property
    def drafts(self) -> bool:
        """Should the next step draft?"""
        return self._left == 0

    def add(self, num_tokens: int, step_s: float) -> None:
        """Record a step.

        Args:
            num_tokens: Tokens that it gave.
            step_s: Seconds that it took.
        """
        if self._left == 0:
            self._steps.append((num_tokens, step_s))
            if len(self._steps) == self._needed:
                self._judge()
            elif len(self._steps) in _LOOKS and self._loses_clearly():
                self._rest_a_while()
            return
        self._left -= 1
        self.num_rested += 1
        if len(self._plain) < self._wanted:
            self._plain.append(step_s)
            if len(self._plain) == self._wanted:
                self._compare()

    def _judge(self) -> None:
        """Judge some steps, and none of them twice: that would take time, and find more chances."""
        if self._pays():
            self._steps.clear()
            self._needed, self._rest = _WINDOW, _FIRST_REST
        else:
            self._rest_a_while()

    def _loses_clearly(self) -> bool:
        """Even if luck was against the drafts, they take longer than they bring."""
        steps = _without_pauses(self._steps)
        won_s = [num_tokens * self.plain_step_s - step_s for num_tokens, step_s in steps]
        count, mean = len(won_s), statistics.mean(won_s)
        squares = sum((each - mean) ** 2 for each in won_s)
        # As if one had differed by a token: a few equal steps aren't certain.
        error = math.sqrt(squares + self.plain_step_s**2) / count
        return mean + _ERRORS * error < 0

    def _rest_a_while(self) -> None:
        self._plain.clear()
        self._left = self._wanted = _PROBE

    def _compare(self) -> None:
        """Judge again, by plain steps of now."""
        # Plain steps are alike, but for the first one behind a prompt.
        self._slowness = statistics.median(self._plain) / self.expected_s
        if not self._steps:
            return
        is_early = len(self._steps) < self._needed
        if self._pays() or (is_early and not self._loses_clearly()):
            self._needed, self._rest = _WINDOW, _FIRST_REST
        else:
            self._left = self._rest
            self._rest = min((4 if is_early else 2) * self._rest, _LONGEST_REST)
            self._needed = _TRIAL
        self._steps.clear()

    def _pays(self) -> bool:
        # The mean: steps of many rows are long, and bring most.
        tokens, seconds = zip(*_without_pauses(self._steps), strict=True)
        self.speed_up = sum(tokens) * self.plain_step_s / sum(seconds)
        return self.speed_up >= WORTHWHILE


def _without_pauses(steps: Sequence[_Step]) -> Sequence[_Step]:
    """Steps in which the machine was about this work: a pause of it says nothing of drafts."""
    longest_s = _A_PAUSE * statistics.median(step_s for _, step_s in steps)
    return [step for step in steps if step[1] <= longest_s]
