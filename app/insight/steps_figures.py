"""The numbers of the steps panel, from traces alone; no Qt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.chat.strip.acceptance import (
    AcceptanceRate,
    AcceptanceTally,
)
from app.insight.forms import FORMS, tree_form
from app.insight.step_parts import PARTS, RARE
from app.insight.track import Track
from app.theme.legend import Legend
from medusa_core.messages import StepTrace

Floats = NDArray[np.float64]
_SMOOTHED = 9  # steps around each one whose speed is averaged


class StepFigures:
    """Figures of a track's decoding steps, which grow with it.

    Args:
        legend: Names of drafters.

    Attributes:
        numbers: Number of each step.
        tokens: Tokens of each step.
        accepted: Accepted draft tokens of each step.
        times: Seconds of each of `PARTS`, which don't overlap. [parts, steps]
        seconds: Total seconds of each step.
        context: Context length after each step.
        rows: Rows of each pass, those outside the tree included.
        forms: Number of steps of each of `FORMS`.
    """

    def __init__(self, legend: Legend) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._table: Floats = np.zeros((0, 6 + len(PARTS)))
        self._acceptance = AcceptanceTally(legend)
        self.forms = [0] * len(FORMS)
        self._next = 0

    def __len__(self) -> int:
        return len(self._rows)

    def follow(self, track: Track) -> None:
        """Add the steps since the last call."""
        for index in range(max(0, self._next - track.num_dropped), len(track)):
            step = track[index]
            if step.step:
                self._add(step)
        self._next = track.num_dropped + len(track)
        if len(self._table) < len(self._rows):
            self._table = np.array(self._rows, dtype=np.float64)

    @property
    def numbers(self) -> Floats:
        return self._table[:, 0]

    @property
    def tokens(self) -> Floats:
        return self._table[:, 1]

    @property
    def accepted(self) -> Floats:
        return self._table[:, 2]

    @property
    def context(self) -> Floats:
        return self._table[:, 3]

    @property
    def seconds(self) -> Floats:
        return self._table[:, 5]

    @property
    def rows(self) -> Floats:
        return self._table[:, 4]

    @property
    def times(self) -> Floats:
        return self._table[:, 6:].T

    @property
    def parts(self) -> tuple[int, ...]:
        """Indices of the `PARTS`; rare ones only if they took any time."""
        times = self.times
        return tuple(part for part in range(len(PARTS)) if part not in RARE or times[part].any())

    def speeds(self) -> Floats:
        """Tokens per second, averaged around each step."""
        if not self._rows:
            return np.zeros(0)
        kernel = np.ones(min(_SMOOTHED, len(self._rows)))
        tokens = np.convolve(self.tokens, kernel, "same")
        return tokens / np.convolve(self.seconds, kernel, "same")

    def rates(self) -> tuple[AcceptanceRate, ...]:
        """Acceptance rate of each source."""
        return self._acceptance.rates()

    def _add(self, step: StepTrace) -> None:
        behind = step.root_place + 1 + step.num_appended
        drafted = [step.sources[node] for node in step.path[1 : step.num_appended + 1]]
        num_rows = len(step.token_ids) + step.num_riders
        counts = (step.step, step.num_appended, len(drafted), behind, num_rows)
        self._rows.append((*counts, step.step_s, *step.times.parts))
        self._acceptance.add(step.sources, tuple(drafted))
        self.forms[tree_form(step.parents)] += 1
