"""Time repeated work."""

from __future__ import annotations

import time
from collections.abc import Callable

MEASURED_S = 0.5
_MIN_RUNS, _MAX_RUNS = 3, 50
_RATE_S = 0.3


def best_seconds(work: Callable[[], object], measured_s: float | None = None) -> float:
    """Return the shortest of some runs: what other programs disturb is only ever longer.

    Args:
        work: What is timed.
        measured_s: Time after which no further run begins; None for `MEASURED_S`.
    """
    limit = MEASURED_S if measured_s is None else measured_s
    times: list[float] = []
    while len(times) < _MIN_RUNS or (sum(times) < limit and len(times) < _MAX_RUNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def runs_per_s(work: Callable[[], object]) -> float:
    """Return how often a second work is done."""
    count, started, took = 0, time.perf_counter(), 0.0
    while took < _RATE_S:
        work()
        count, took = count + 1, time.perf_counter() - started
    return count / took
