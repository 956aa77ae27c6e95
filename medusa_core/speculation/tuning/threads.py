"""How many CPU threads a step runs best with.

A small model's step is made of hundreds of short operations, and after each of them the threads
wait for each other. If one of them has to share its core with another program, all wait: steps of
one millisecond have been seen to take three hundred. A large model's step needs all cores.
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

_LEAST_S = 0.03  # threads that were woken share a processor for up to ten milliseconds
_NUM_TOKENS = 8
_PREFILL_TOKENS = 64
_LARGE_S = 0.05  # a pass of a large model
_BUSY = 0.75  # processes that want to run, for each thread
_ROUNDS = 5
_LONG_S = 0.25  # a pass that isn't measured for the choice
_CLEARLY = 1.1  # times as long
_MAJORITY = 0.75  # of the rounds
_RECHECK_S = 30.0  # a smaller count is measured again after so long
_MOST_RECHECKS = 3


@torch.inference_mode()
def settle_threads(target: Target, most: int) -> int:
    """Measure short passes with 1, 2, 4, ... threads in turns; fewer must be clearly faster.

    Prefill, whose passes are longer, gets a count of its own, which the runner keeps.

    Args:
        target: A loaded target.
        most: Threads that may be used.

    Returns:
        The count that torch now uses in the calling thread, for decoding.
    """
    if target.precision.device.type != "cpu":
        return compute_threads.count()
    if target.assistant is not None:  # first: the target's count is torch's in the end
        settle_threads(target.assistant, most)
    for_prefill = _best(target, most, _prompt_tokens(target))
    best = _best(target, most, _NUM_TOKENS)
    target.runner.use_threads(best, max(best, for_prefill))
    log.info("of %d threads %d serve decoding best, %d prefill", most, best, for_prefill)
    _meet_row_counts(target)
    return best


class Threads:
    """The count that a target decodes with, chosen anew once other programs have gone."""

    def __init__(self, target: Target, most: int) -> None:
        """Choose it.

        Args:
            target: A loaded target.
            most: Threads that may be used.
        """
        self._target, self._most = target, most
        self._num_rechecks = 0
        self._settle()

    def settle_again(self) -> bool:
        """Choose anew where it may have been a disturbed moment.

        That is where others had the processor the last time and have left it since, or, a few
        times, where fewer threads seemed faster: all cores are the better choice in general.

        Returns:
            Whether another count serves now: what was measured with the old one holds no more.
        """
        has_left = self._was_busy and not _is_busy(self._most)
        is_due = self._num_rechecks < _MOST_RECHECKS and time.monotonic() > self._recheck_at
        if not has_left and not (is_due and self._count < self._most):
            return False
        self._num_rechecks += not has_left
        before = self._count
        self._settle()
        return self._count != before

    def _settle(self) -> None:
        self._was_busy = _is_busy(self._most)
        self._count = settle_threads(self._target, self._most)
        self._recheck_at = time.monotonic() + _RECHECK_S


def _is_busy(num_threads: int) -> bool:
    """Whether more is running than one program that has not all of so many processors."""
    if sys.platform == "win32":  # which tells no load
        return False
    return os.getloadavg()[0] > _BUSY * num_threads


def _meet_row_counts(target: Target) -> None:
    """Let kernels be prepared for every size of chunk now, not in somebody's first messages."""
    most = _prompt_tokens(target)
    kv = target.allocate_cache(most)
    for count in range(ROUND_ROWS, most + 1, ROUND_ROWS):
        kv.truncate(0)
        started = time.perf_counter()
        target.runner.extend([0] * count, kv)
        if time.perf_counter() - started > _LARGE_S:
            return  # a large model's passes take longer than any preparation


def _prompt_tokens(target: Target) -> int:
    """Rows of a prompt that are read at once, a usual one's at most."""
    return min(_PREFILL_TOKENS, target.config.context_tokens, target.chunk_rows)


def _best(target: Target, most: int, num_tokens: int) -> int:
    """The largest count, unless a smaller one is clearly faster in round after round.

    Counts are measured in turns: another program that runs for a moment slows all of them, or is
    outvoted by the other rounds. Threads that were idle for a moment are no reason to use fewer.
    """
    counts = sorted({min(2**power, most) for power in range(most.bit_length() + 1)}, reverse=True)
    if len(counts) == 1 or _pass_s(target, most, num_tokens) > _LONG_S:
        return most  # a large model gains by all cores, and nobody should wait for many passes
    rounds = [
        {count: _pass_s(target, count, num_tokens) for count in counts} for _ in range(_ROUNDS)
    ]
    best = most
    for count in counts[1:]:
        is_faster = [each[count] * _CLEARLY < each[best] for each in rounds]
        if sum(is_faster) > len(rounds) * _MAJORITY:
            best = count
    return best


def _pass_s(target: Target, num_threads: int, num_tokens: int) -> float:
    """Usual seconds of one pass over some rows."""
    target.runner.use_threads(num_threads, num_threads)
    kv = target.allocate_cache(num_tokens)
    measured: list[float] = []
    while sum(measured) < _LEAST_S:
        kv.truncate(0)
        started = time.perf_counter()
        states = target.runner.extend([0] * num_tokens, kv)
        target.runner.logits(states[-_NUM_TOKENS:])  # of a prompt no more are scored
        measured.append(time.perf_counter() - started)
    return quartile_s(measured)
