"""Choose the number of CPU threads with which a step is fastest.

A small model's step consists of hundreds of short operations, after each of which the threads wait
for each other. If one of them shares its core with another program, all wait: steps of one
millisecond have been seen to take three hundred. A large model's step needs all cores.
"""

from __future__ import annotations

import logging
import os
import sys
import time

import torch

from medusa_core.loading.target import Target
from medusa_core.runtime.runner.resident import ROUND_ROWS
from medusa_core.speculation.tuning.step_costs import quartile_s
from medusa_core.system import compute_threads

log = logging.getLogger(__name__)

_MIN_S = 0.03  # of measuring: threads that wake up share a core for up to ten milliseconds
_NUM_TOKENS = 8
_PREFILL_TOKENS = 64
_LARGE_S = 0.05  # duration of a large model's pass
_BUSY = 0.75  # runnable processes per thread
_ROUNDS = 5
_LONG_S = 0.25  # longer passes aren't measured with fewer threads
_MIN_GAIN = 1.1  # of fewer threads
_MAJORITY = 0.75  # of the rounds
_RECHECK_S = 30.0  # a smaller count is measured again after so long
_MAX_RECHECKS = 3


@torch.inference_mode()
def choose_threads(target: Target, max_threads: int) -> int:
    """Measure short passes with 1, 2, 4, ... threads in turns; fewer must be clearly faster.

    Prefill, whose passes are longer, gets a number of its own, which the runner keeps.

    Args:
        target: A loaded target.
        max_threads: Maximum number of threads.

    Returns:
        The number for decoding, which torch now uses in the calling thread.
    """
    if target.precision.device.type != "cpu" and target.plan.cpu_parts is None:
        return compute_threads.count()
    if target.assistant is not None:  # first, as torch keeps the target's number
        choose_threads(target.assistant, max_threads)
    for_prefill = _best(target, max_threads, _prompt_tokens(target))
    best = _best(target, max_threads, _NUM_TOKENS)
    target.runner.use_threads(best, max(best, for_prefill))
    log.info("%d of %d threads for decoding, %d for prefill", best, max_threads, for_prefill)
    _warm_up_row_counts(target)
    return best


class Threads:
    """Number of threads of a target; measured again when other programs may have ended."""

    def __init__(self, target: Target, max_threads: int) -> None:
        """Choose the number.

        Args:
            target: A loaded target.
            max_threads: Maximum number of threads.
        """
        self._target, self._max_threads = target, max_threads
        self._num_rechecks = 0
        self._choose()

    def choose_again(self) -> bool:
        """Choose again if the last choice may have been disturbed.

        That is if other programs used the processor then and have ended since, or, a few times, if
        fewer threads seemed faster: all cores are the better choice in general.

        Returns:
            Whether the number changed, so that measurements with the old one don't hold any more.
        """
        has_ended = self._was_busy and not _is_busy(self._max_threads)
        is_due = self._num_rechecks < _MAX_RECHECKS and time.monotonic() > self._recheck_at
        if not has_ended and not (is_due and self._count < self._max_threads):
            return False
        self._num_rechecks += not has_ended
        before = self._count
        self._choose()
        return self._count != before

    def _choose(self) -> None:
        """Measure and set the number of threads."""
        self._was_busy = _is_busy(self._max_threads)
        self._count = choose_threads(self._target, self._max_threads)
        self._recheck_at = time.monotonic() + _RECHECK_S


def _is_busy(num_threads: int) -> bool:
    """Whether other programs use the processor."""
    if sys.platform == "win32":  # it has no load average
        return False
    return os.getloadavg()[0] > _BUSY * num_threads


def _warm_up_row_counts(target: Target) -> None:
    """Run a pass of every chunk size, so that kernels aren't compiled in the first messages."""
    max_rows = _prompt_tokens(target)
    kv = target.allocate_cache(max_rows)
    for count in range(ROUND_ROWS, max_rows + 1, ROUND_ROWS):
        kv.truncate(0)
        started = time.perf_counter()
        target.runner.extend([0] * count, kv)
        if time.perf_counter() - started > _LARGE_S:
            return  # a large model's passes take longer than any compilation


def _prompt_tokens(target: Target) -> int:
    """Rows of a short prompt's chunk."""
    return min(_PREFILL_TOKENS, target.config.context_tokens, target.chunk_rows)


def _best(target: Target, max_threads: int, num_tokens: int) -> int:
    """The largest number, unless a smaller one is clearly faster in most rounds.

    Numbers are measured in turns, so that another program that runs for a moment slows all of them,
    or is outvoted by the other rounds.
    """
    powers = range(max_threads.bit_length() + 1)
    counts = sorted({min(2**power, max_threads) for power in powers}, reverse=True)
    if len(counts) == 1 or _pass_s(target, max_threads, num_tokens) > _LONG_S:
        return max_threads  # a large model gains by all cores, and its passes delay loading
    rounds = [
        {count: _pass_s(target, count, num_tokens) for count in counts} for _ in range(_ROUNDS)
    ]
    best = max_threads
    for count in counts[1:]:
        is_faster = [each[count] * _MIN_GAIN < each[best] for each in rounds]
        if sum(is_faster) > len(rounds) * _MAJORITY:
            best = count
    return best


def _pass_s(target: Target, num_threads: int, num_tokens: int) -> float:
    """Seconds of a pass of `num_tokens` rows."""
    target.runner.use_threads(num_threads, num_threads)
    kv = target.allocate_cache(num_tokens)
    measured: list[float] = []
    while sum(measured) < _MIN_S:
        kv.truncate(0)
        started = time.perf_counter()
        states = target.runner.extend([0] * num_tokens, kv)
        target.runner.logits(states[-_NUM_TOKENS:])  # prefill computes no more
        measured.append(time.perf_counter() - started)
    return quartile_s(measured)
