"""Learning curve of a run, measured in a bounded share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable

from medusa_core.training.run_folder import RunFolder

_POINTS = 40  # points of a curve, about
_LEAST_STEPS = 25  # factor between the steps of points
_TIMES_LONGER = 20  # training time between points, relative to the last point's time


class Curve:
    """Adds points to a run's learning curve."""

    def __init__(self, folder: RunFolder, num_steps: int, is_timed: bool) -> None:
        """Continue after existing points.

        Args:
            folder: Folder of the run.
            num_steps: Steps of the training.
            is_timed: Space points by the time they take; else by steps, for reproducible runs.
        """
        self._folder, self._num_steps, self._is_timed = folder, num_steps, is_timed
        self._every = max(_LEAST_STEPS, num_steps // _POINTS)
        self._ended_s, self._took_s = time.monotonic(), 0.0

    def is_due(self, step: int) -> bool:
        """Whether a point is due after this step."""
        if step == self._num_steps:
            return True
        since_s = time.monotonic() - self._ended_s
        return step % self._every == 0 and not (
            self._is_timed and since_s < _TIMES_LONGER * self._took_s
        )

    def add(self, step: int, loss: float, accuracy: Callable[[], list[float]]) -> None:
        """Add loss and accuracy after a step, and note the time that measuring took.

        Args:
            step: Number of finished steps.
            loss: Mean loss of the last steps.
            accuracy: Measures the top-1 accuracy of each head.
        """
        started_s = time.monotonic()
        self._folder.add_to_curve({"step": step, "loss": loss, "top1": accuracy()})
        self._ended_s = time.monotonic()
        self._took_s = self._ended_s - started_s
