"""Learns from answers how often each rank of each head is right.

Counted are the best ranks whether or not they were in the tree (else a pruned rank could never come
back), against the tokens that followed; depth d only where the tokens before it were among the
guesses too, as that is what a tree's node builds on. Chance changes what is right, so every
temperature has its own counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.tables import (
    Accuracies,
    temperature_bucket,
)

_PRIOR_WEIGHT = 60.0  # what was known before counts as much as so many observations
_MOST_SEEN = 4000.0  # beyond, older ones fade
_PRIOR_STEPS = 20.0
_AGES = 0.99
_LEVELS = 8
_USUAL_SHARE = 0.6  # of drafts right at a level, before anything is known
_STEEPEST = 3.0
_PACE_STEPS = 8.0  # what was usual before counts as much as so many plain steps
_MOST_PACE = 16.0
_A_PAUSE = 5.0  # times as long as an answer's other steps

Guesses = Sequence[Sequence[int]]


class AccuracyCounts:
    """Counts for one set of heads under one temperature.

    Attributes:
        num_steps: Steps that were learned from, faded ones included.
    """

    def __init__(self, prior: Accuracies) -> None:
        """Start from what is known.

        Args:
            prior: Per head, the probability that its rank 0, 1, ... is right.
        """
        self.num_steps = 0
        self._prior = prior
        self._seen = [0.0] * len(prior)
        self._right = [[0.0] * len(row) for row in prior]

    @property
    def accuracies(self) -> Accuracies:
        """Per head, the probability that its rank 0, 1, ... is right, given the path before it."""
        return tuple(
            tuple(
                (share * _PRIOR_WEIGHT + right) / (_PRIOR_WEIGHT + seen)
                for share, right in zip(shares, rights, strict=True)
            )
            for shares, rights, seen in zip(self._prior, self._right, self._seen, strict=True)
        )

    def learn(self, guesses: Guesses, followed: Sequence[int]) -> None:
        """Count what the heads guessed in one step.

        Args:
            guesses: Per head its best tokens, best first.
            followed: The tokens that came, as far as they are known.
        """
        self.num_steps += 1
        for depth, (best, token_id) in enumerate(zip(guesses, followed, strict=False)):
            if depth == len(self._seen):
                return
            if self._seen[depth] >= _MOST_SEEN:
                self._fade(depth)
            self._seen[depth] += 1
            if token_id not in best:
                return
            rank = list(best).index(token_id)
            if rank < len(self._right[depth]):
                self._right[depth][rank] += 1

    def to_json(self) -> dict[str, Any]:
        """What was counted."""
        return {"steps": self.num_steps, "seen": self._seen, "right": self._right}

    def go_on(self, raw: Any) -> None:
        """Go on from what was counted before.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: The counts are those of other heads, or make no sense.
        """
        seen = [float(count) for count in raw["seen"]]
        right = [[float(count) for count in row] for row in raw["right"]]
        sizes = [len(row) for row in self._prior]
        sane = all(
            0 <= sum(row) <= count <= _MOST_SEEN for row, count in zip(right, seen, strict=True)
        )
        if [len(row) for row in right] != sizes or not sane:
            raise ValueError("the counts are of other heads")
        self.num_steps, self._seen, self._right = int(raw["steps"]), seen, right

    def _fade(self, depth: int) -> None:
        self._seen[depth] /= 2
        self._right[depth] = [count / 2 for count in self._right[depth]]


class StepYield(NamedTuple):
    """Time, rows and accepted drafts of one step.

    Attributes:
        promised: How many drafts were likely to be accepted, as the drafter saw it.
        num_accepted: How many were.
        num_rows: Rows of its tree, root included.
        seconds: How long it took.
        levels: How deep the tree was.
        draft_s: How much of it drafting took; 0 where that isn't told.
    """

    promised: float
    num_accepted: int
    num_rows: int
    seconds: float
    levels: int = 0
    draft_s: float = 0.0


class Yields:
    """Running averages of a drafter's steps.

    Expected acceptance was learned on other texts; what came of it here corrects it.
    """

    def __init__(self) -> None:
        self._promised = self._kept = 0.0
        self._usual_pace = 1.0
        self._pace: float | None = None
        self._tokens = self._seconds = 0.0
        self._rows, self._asked = _Line(), _Line()
        self._tried, self._passed = [0.0] * _LEVELS, [0.0] * _LEVELS

    @property
    def share(self) -> float:
        """Accepted drafts per promised one; 1 before anything is known."""
        return (self._kept + _PRIOR_WEIGHT) / (self._promised + _PRIOR_WEIGHT)

    def tokens_per_s(self, plain_step_s: float) -> float:
        """Tokens per second of decoding; before anything is known, as many as the last time.

        That is plain decoding's at first.
        """
        before = _PACE_STEPS * self._usual_pace
        return (self._tokens + before) / (self._seconds + _PACE_STEPS * plain_step_s)

    @property
    def depths(self) -> Accuracies:
        """How often one of the drafts of level 1, 2, ... is right where those before it were."""
        return tuple(
            ((passed + _PRIOR_STEPS * _USUAL_SHARE) / (tried + _PRIOR_STEPS),)
            for passed, tried in zip(self._passed, self._tried, strict=True)
        )

    @property
    def slowness(self) -> float:
        """How much longer further rows take than was measured beforehand."""
        return self._rows.slope

    @property
    def asking_slowness(self) -> float:
        """How much longer further levels take to be asked for than was measured beforehand."""
        return self._asked.slope

    def to_json(self) -> dict[str, Any]:
        """What was counted; times are of the moment and aren't told, but the pace is.

        The pace is how many tokens come in the time of a plain step.
        """
        return {
            "promised": self._promised,
            "kept": self._kept,
            "pace": self._pace or 1.0,
            "tried": self._tried,
            "passed": self._passed,
        }

    def go_on(self, raw: Any) -> None:
        """Go on from what was counted before.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: The counts make no sense.
        """
        promised, kept, pace = (float(raw[key]) for key in ("promised", "kept", "pace"))
        tried, passed = ([float(count) for count in raw[key]] for key in ("tried", "passed"))
        sane = all(0 <= less <= more for less, more in zip(passed, tried, strict=True))
        most = 2 * _MOST_SEEN
        sane = sane and 0 <= promised <= most and 0 <= kept <= most and 0 < pace <= _MOST_PACE
        if len(tried) != _LEVELS or not sane:
            raise ValueError("the counts make no sense")
        self._promised, self._kept, self._tried, self._passed = promised, kept, tried, passed
        self._usual_pace = self._pace = pace

    @property
    def pace(self) -> float | None:
        """Tokens in the time of a plain step; None before anything is known."""
        return self._pace

    def forget_times(self) -> None:
        """Begin to measure anew: steps take another time from now on."""
        self._usual_pace, self._pace = 1.0, None
        self._tokens = self._seconds = 0.0
        self._rows, self._asked = _Line(), _Line()

    def add(
        self,
        steps: Sequence[StepYield],
        measured_s: Sequence[float],
        asked_s: Sequence[float] = (0.0,),
    ) -> None:
        """Count the steps of an answer; pauses between steps don't count.

        Args:
            steps: The steps.
            measured_s: Seconds of a step of 1, 2, ... rows, as measured beforehand.
            asked_s: Seconds of asking for no level, one, two, ..., as measured beforehand.
        """
        if not steps:
            return
        longest_s = _A_PAUSE * statistics.median(step.seconds for step in steps)
        for step in steps:
            seconds = min(step.seconds, longest_s)
            self._add(step, seconds)
            if step.num_rows <= len(measured_s):
                self._rows.add(
                    measured_s[step.num_rows - 1] / measured_s[0], seconds / measured_s[0]
                )
            if step.draft_s and step.levels and len(asked_s) > 1 and measured_s:
                expected_s = asked_s[min(step.levels, len(asked_s) - 1)]
                self._asked.add(expected_s / measured_s[0], step.draft_s / measured_s[0])
        if measured_s:
            pace = self.tokens_per_s(measured_s[0]) * measured_s[0]
            self._pace = min(_MOST_PACE, max(1 / _MOST_PACE, pace))

    def _add(self, step: StepYield, seconds: float) -> None:
        # A step without drafts says nothing of what they are worth, but lets what is known age: a
        # drafter that is trusted too little must come to be tried again.
        fades = 0.5 if self._promised >= _MOST_SEEN else 1.0 if step.promised else _AGES
        self._promised = fades * self._promised + step.promised
        self._kept = fades * self._kept + (step.num_accepted if step.promised else 0)
        if self._tokens >= _MOST_SEEN:
            self._tokens, self._seconds = self._tokens / 2, self._seconds / 2
        self._tokens += 1 + step.num_accepted
        self._seconds += seconds
        for level in range(step.levels, _LEVELS):  # what isn't asked any more is tried again later
            self._tried[level] *= _AGES
            self._passed[level] *= _AGES
        for level in range(min(step.levels, step.num_accepted + 1, _LEVELS)):
            if self._tried[level] >= _MOST_SEEN:
                self._tried[level], self._passed[level] = (
                    self._tried[level] / 2,
                    self._passed[level] / 2,
                )
            self._tried[level] += 1
            self._passed[level] += level < step.num_accepted


class _Line:
    """The line through points as they come, older ones fading; its slope is 1 before."""

    def __init__(self) -> None:
        self._count = self._x = self._y = 0.0  # their number and their means
        self._xx = self._xy = _PRIOR_STEPS  # what they differ by from these, squared and multiplied

    @property
    def slope(self) -> float:
        return min(_STEEPEST, max(1 / _STEEPEST, self._xy / self._xx))

    def add(self, x: float, y: float) -> None:
        """Count a point (Welford 1962)."""
        if self._count >= _MOST_SEEN:
            self._count, self._xx, self._xy = self._count / 2, self._xx / 2, self._xy / 2
        self._count += 1
        beside, above = x - self._x, y - self._y
        self._x += beside / self._count
        self._y += above / self._count
        self._xx += beside * (x - self._x)
        self._xy += beside * (y - self._y)


def bucket_of(settings: GenerateSettings, draws: bool) -> float:
    """The temperature under which an answer's counts are kept; 0 without chance."""
    return temperature_bucket(settings.temperature) if draws else 0.0
