"""Cost model: seconds of steps and of drafting, measured beforehand and corrected by answers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.step_costs import MAX_ROWS, StepCosts
from medusa_core.speculation.tuning.step_outcome import AnswerKind, StepOutcome

_MAX_SEEN = 4000.0  # tokens or points; beyond, older ones fade
_PRIOR_STEPS = 20.0
_MAX_FACTOR = 3.0
_PRIOR_PLAIN_STEPS = 8.0  # weight of the previous run's speed
_MAX_SPEED_UP = 16.0
_PAUSE = 5.0  # times the median step of an answer: it wasn't spent on the step


class CostModel:
    """Seconds that steps and drafts take on this computer, by kind of answer.

    | Input | Unit | Source |
    |---|---|---|
    | T(n): a step of n rows, by cache length | s | `StepCosts.seconds`, measured by `Calibration` |
    | drafting of 1, 2, ... levels, by source | s | `StepCosts.source_costs`, measured likewise |
    | duration, drafting, rows and tokens of steps | s | `observe`, during and after each answer |
    | speed-up over plain decoding in earlier runs | ratio | `load`, from the measurement files |

    Attributes:
        costs: The measured costs; None if there are none.
    """

    def __init__(self, costs: StepCosts | None) -> None:
        self.costs = costs
        self._speeds: dict[AnswerKind, DecodingSpeed] = {}

    def set_costs(self, costs: StepCosts | None) -> None:
        """Replace the measured costs, and forget the observations of steps with the old ones."""
        self.costs = costs
        self._speeds = {kind: DecodingSpeed() for kind in self._speeds}

    @property
    def kinds(self) -> Sequence[AnswerKind]:
        """Kinds of answers with a known or observed speed."""
        return tuple(self._speeds)

    def speed(self, kind: AnswerKind) -> DecodingSpeed:
        """The observed speed of a kind of answers."""
        if kind not in self._speeds:
            self._speeds[kind] = DecodingSpeed()
        return self._speeds[kind]

    def tokens_per_s(self, kind: AnswerKind, length: int) -> float:
        """Tokens per second of a kind of answers after `length` cached rows.

        The costs must have been measured.
        """
        assert self.costs is not None  # by the caller
        return self.speed(kind).tokens_per_s(self.costs.plain_s(length))

    def observe(
        self,
        kind: AnswerKind,
        length: int,
        outcomes: Sequence[StepOutcome],
        drafter: DrafterSpec | None,
    ) -> None:
        """Learn from steps of an answer.

        Args:
            kind: The kind of answer.
            length: Number of cached rows at its start.
            outcomes: Its steps, without those of paused drafting.
            drafter: The drafter; None learns nothing of drafting.
        """
        if self.costs is None:
            self.speed(kind).add(outcomes, ())
            return
        sources = drafter.sources if drafter else ()
        draft_s = self.costs.source_s(sources, kind.temperature > 0, is_chain=True)
        self.speed(kind).add(outcomes, self.costs.steps_s(MAX_ROWS, length), draft_s)

    def load(self, speed_ups: Mapping[AnswerKind, float]) -> None:
        """Replace all observations by the speed-ups of earlier runs."""
        self._speeds = {kind: DecodingSpeed(speed_up) for kind, speed_up in speed_ups.items()}


def checked_speed_up(value: object) -> float:
    """Check a stored speed-up.

    Raises:
        TypeError: It isn't a number.
        ValueError: It is out of range.
    """
    speed_up = float(value)  # type: ignore[arg-type]
    if not 0 < speed_up <= _MAX_SPEED_UP:
        raise ValueError("the speed-up is out of range")
    return speed_up


class DecodingSpeed:
    """Observed speed of one kind of answers, older steps fading.

    Attributes:
        speed_up: Speed over plain decoding; None if unknown.
    """

    def __init__(self, speed_up: float | None = None) -> None:
        self.speed_up = speed_up
        self._prior_speed_up = 1.0 if speed_up is None else speed_up
        self._tokens = self._seconds = 0.0
        self._rows, self._drafts = _Line(), _Line()

    def tokens_per_s(self, plain_step_s: float) -> float:
        """Tokens per second; before anything is known, those of plain decoding.

        Args:
            plain_step_s: Seconds of a plain step.
        """
        prior = _PRIOR_PLAIN_STEPS * self._prior_speed_up
        return (self._tokens + prior) / (self._seconds + _PRIOR_PLAIN_STEPS * plain_step_s)

    @property
    def row_factor(self) -> float:
        """Observed over measured seconds of an additional row."""
        return self._rows.slope

    @property
    def draft_factor(self) -> float:
        """Observed over measured seconds of drafting an additional level."""
        return self._drafts.slope

    def add(
        self,
        outcomes: Sequence[StepOutcome],
        steps_s: Sequence[float],
        draft_s: Sequence[float] = (0.0,),
    ) -> None:
        """Add an answer's steps; pauses don't count.

        Args:
            outcomes: The steps.
            steps_s: Measured seconds of a step of 1, 2, ... rows; empty if unknown.
            draft_s: Measured seconds of drafting 0, 1, 2, ... levels.
        """
        if not outcomes:
            return
        longest_s = _PAUSE * statistics.median(outcome.seconds for outcome in outcomes)
        for outcome in outcomes:
            seconds = min(outcome.seconds, longest_s)
            if self._tokens >= _MAX_SEEN:
                self._tokens, self._seconds = self._tokens / 2, self._seconds / 2
            self._tokens += 1 + outcome.num_accepted
            self._seconds += seconds
            if outcome.num_rows <= len(steps_s):
                expected_s = steps_s[outcome.num_rows - 1]
                self._rows.add(expected_s / steps_s[0], seconds / steps_s[0])
            if outcome.draft_s and outcome.levels and len(draft_s) > 1 and steps_s:
                expected_s = draft_s[min(outcome.levels, len(draft_s) - 1)]
                self._drafts.add(expected_s / steps_s[0], outcome.draft_s / steps_s[0])
        if steps_s:
            speed_up = self.tokens_per_s(steps_s[0]) * steps_s[0]
            self.speed_up = min(_MAX_SPEED_UP, max(1 / _MAX_SPEED_UP, speed_up))


class _Line:
    """Linear regression with fading points; the slope is 1 before there are any."""

    def __init__(self) -> None:
        self._count = self._x = self._y = 0.0  # number of points, and their means
        self._xx = self._xy = _PRIOR_STEPS  # sums of squares and products of deviations

    @property
    def slope(self) -> float:
        """The slope, limited to a factor of 3 in both directions."""
        return min(_MAX_FACTOR, max(1 / _MAX_FACTOR, self._xy / self._xx))

    def add(self, x: float, y: float) -> None:
        """Add a point (Welford 1962)."""
        if self._count >= _MAX_SEEN:
            self._count, self._xx, self._xy = self._count / 2, self._xx / 2, self._xy / 2
        self._count += 1
        x_deviation, y_deviation = x - self._x, y - self._y
        self._x += x_deviation / self._count
        self._y += y_deviation / self._count
        self._xx += x_deviation * (x - self._x)
        self._xy += x_deviation * (y - self._y)
