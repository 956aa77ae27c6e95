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
from medusa_core.speculation.tuning.costs import usual_s

log = logging.getLogger(__name__)

_LEAST_S = 0.03  # threads that were woken share a processor for up to ten milliseconds
_NUM_TOKENS = 8
_PREFILL_TOKENS = 64
_LARGE_S = 0.05  # a pass of a large model
_BUSY = 0.75  # processes that want to run, for each thread
_WORTHWHILE = 0.8  # more threads must save a fifth to be worth what they risk


@torch.inference_mode()
def settle_threads(target: Target, most: int) -> int:
    """Measure short passes with 1, 2, 4, ... threads and take more while that is worthwhile.

    Prefill, whose passes are longer, gets a count of its own, which the runner keeps.

    Args:
        target: A loaded target.
        most: Threads that may be used.

    Returns:
        The count that torch now uses in the calling thread, for decoding.
    """
    if target.precision.device.type != "cpu":
        return torch.get_num_threads()
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
        self._settle()

    def settle_again(self) -> bool:
        """Choose anew, if others had the processor the last time and have left it since.

        Returns:
            Whether another count serves now: what was measured with the old one holds no more.
        """
        if not self._was_busy or _is_busy(self._most):
            return False
        before = self._count
        self._settle()
        return self._count != before

    def _settle(self) -> None:
        self._was_busy = _is_busy(self._most)
        self._count = settle_threads(self._target, self._most)


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
    best, best_s = 1, _pass_s(target, 1, num_tokens)
    count = 2
    while count < 2 * most:
        tried = min(count, most)
        tried_s = _pass_s(target, tried, num_tokens)
        if tried_s < best_s * _WORTHWHILE:
            best, best_s = tried, tried_s
        count *= 2
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
    return usual_s(measured)
