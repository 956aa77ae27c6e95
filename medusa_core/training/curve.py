"""How often heads are right as they learn: points of a curve, in a bounded share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable

from medusa_core.training.run_folder import RunFolder

_POINTS = 40  # of a curve, about
_LEAST_STEPS = 25  # from one to the next
_TIMES_LONGER = 20  # training between two points takes longer than the last point did


class Curve:
    """Adds points to a run's curve."""

    def __init__(self, folder: RunFolder, num_steps: int, is_timed: bool) -> None:
        """Begin behind the points that are there.

        Args:
            folder: Of the run.
            num_steps: Of the training.
            is_timed: Points wait until they take little of the time; else they come after fixed
                steps, as a reproducible run needs it.
        """
        self._folder, self._num_steps, self._is_timed = folder, num_steps, is_timed
        self._every = max(_LEAST_STEPS, num_steps // _POINTS)
        self._ended_s, self._took_s = time.monotonic(), 0.0

    def is_due(self, step: int) -> bool:
        """Whether a point comes after this step."""
        if step == self._num_steps:
            return True
        since_s = time.monotonic() - self._ended_s
        return step % self._every == 0 and not (
            self._is_timed and since_s < _TIMES_LONGER * self._took_s
        )

    def add(self, step: int, loss: float, accuracy: Callable[[], list[float]]) -> None:
        """Add a point.

        Args:
            step: So many are done.
            loss: Of the last ones.
            accuracy: Measures how often the best guess of each head is right.
        """
        started_s = time.monotonic()
        self._folder.add_to_curve({"step": step, "loss": loss, "top1": accuracy()})
        self._ended_s = time.monotonic()
        self._took_s = self._ended_s - started_s
