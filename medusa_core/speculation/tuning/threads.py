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
from collections.abc import Generator
from typing import NamedTuple

import torch

from medusa_core.loading.target import Target
from medusa_core.runtime.runner.resident import ROUND_ROWS
from medusa_core.speculation.tuning.step_costs import quartile_s

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


class ThreadCounts(NamedTuple):
    """Numbers of threads of a target.

    Attributes:
        decoding: Number for passes of few rows.
        prefill: Number for passes of many rows.
    """

    decoding: int
    prefill: int


_Choice = Generator[None, None, tuple[ThreadCounts, ...]]


def choose_threads(target: Target, max_threads: int) -> int:
    """Measure short passes with 1, 2, 4, ... threads in turns; fewer must be clearly faster.

    Prefill, whose passes are longer, gets a number of its own, which the runner keeps.

    Args:
        target: A loaded target.
        max_threads: Maximum number of threads.

    Returns:
        The number for decoding, which torch now uses in the calling thread.
    """
    choice = Threads(target, max_threads)
    choice.choose()
    return choice.counts[-1].decoding


class Threads:
    """Numbers of threads of a target and its draft model.

    Measuring takes up to a second, which would delay the first answer: until it has ended all
    cores compute, or the numbers of an earlier run.

    Attributes:
        max_threads: Maximum number of threads.
        counts: Numbers of the draft model, if there is one, and of the target.
        was_disturbed: Other programs used the processor when these numbers were measured.
    """

    def __init__(
        self, target: Target, max_threads: int, known: tuple[ThreadCounts, ...] | None = None
    ) -> None:
        """Use known numbers, or the maximum.

        Args:
            target: A loaded target.
            max_threads: Maximum number of threads.
            known: Numbers that an earlier run measured, as in `counts`.
        """
        self._targets = (*(() if target.assistant is None else (target.assistant,)), target)
        self.max_threads = max_threads
        self._num_rechecks = 0
        self._choice: _Choice | None = None
        self._recheck_at = time.monotonic() + _RECHECK_S
        self.was_disturbed = False
        self._is_disturbed = False  # the measurement under way
        self._is_measured = known is not None or not self._computes
        most = ThreadCounts(max_threads, max_threads)
        self.counts = known or (most,) * len(self._targets)
        self._use()

    @property
    def _computes(self) -> bool:
        """Whether the processor computes the target's layers, or some of them."""
        target = self._targets[-1]
        return target.precision.device.type == "cpu" or target.plan.cpu_parts is not None

    @property
    def is_due(self) -> bool:
        """Whether the numbers should be measured, or measured again.

        That is if other programs used the processor then and have ended since, or, a few times, if
        fewer threads seemed faster: all cores are the better choice in general.
        """
        if not self._computes:
            return False
        if self._choice is not None or not self._is_measured:
            return True
        if self._has_quietened:
            return True
        is_late = self._num_rechecks < _MAX_RECHECKS and time.monotonic() > self._recheck_at
        return is_late and self.counts[-1].decoding < self.max_threads

    @property
    def _has_quietened(self) -> bool:
        """Whether programs that disturbed the last measurement have ended."""
        return self.was_disturbed and not _is_busy(self.max_threads)

    @torch.inference_mode()
    def advance(self) -> bool:
        """Run a piece of the measurement; returns whether it has ended.

        Raises:
            OutOfMemoryError: Conversations hold the rows that it needs.
        """
        if self._choice is None:
            self._num_rechecks += self._is_measured and not self._has_quietened
            self._is_disturbed = _is_busy(self.max_threads)
            self._choice = self._measure()
        try:
            next(self._choice)
        except StopIteration as end:
            self.counts, self._choice, self._is_measured = end.value, None, True
            self.was_disturbed = self._is_disturbed
            self._recheck_at = time.monotonic() + _RECHECK_S
            return True
        except BaseException:
            self.pause()
            raise
        return False

    def choose(self) -> None:
        """Measure the numbers at once, where the processor computes."""
        while self._computes and not self.advance():
            pass

    def pause(self) -> None:
        """Use the last numbers while an answer runs; the measurement begins again afterwards."""
        if self._choice is not None:
            self._choice = None
            self._use()

    def _use(self) -> None:
        """Use the numbers, the target's last, as torch keeps them."""
        if self._computes:
            for target, counts in zip(self._targets, self.counts, strict=True):
                target.runner.use_threads(*counts)

    def _measure(self) -> _Choice:
        """Measure and use the numbers of all targets."""
        found = []
        for target in self._targets:
            for_prefill = yield from _best(target, self.max_threads, _prompt_tokens(target))
            best = yield from _best(target, self.max_threads, _NUM_TOKENS)
            counts = ThreadCounts(best, max(best, for_prefill))
            target.runner.use_threads(*counts)
            found.append(counts)
            log.info(
                "%d of %d threads for decoding, %d for prefill", best, self.max_threads, counts[1]
            )
            yield from _warm_up_row_counts(target)
        return tuple(found)


def _is_busy(num_threads: int) -> bool:
    """Whether other programs use the processor."""
    if sys.platform == "win32":  # it has no load average
        return False
    return os.getloadavg()[0] > _BUSY * num_threads


def _warm_up_row_counts(target: Target) -> Generator[None]:
    """Run a pass of every chunk size, so that torch's kernels aren't compiled in messages."""
    max_rows = _prompt_tokens(target)
    kv = target.allocate_cache(max_rows)
    for count in range(ROUND_ROWS, max_rows + 1, ROUND_ROWS):
        kv.truncate(0)
        started = time.perf_counter()
        target.runner.extend([0] * count, kv)
        if time.perf_counter() - started > _LARGE_S:
            return  # a large model's passes take longer than any compilation
        yield


def _prompt_tokens(target: Target) -> int:
    """Rows of a short prompt's chunk."""
    return min(_PREFILL_TOKENS, target.config.context_tokens, target.chunk_rows)


def _best(target: Target, max_threads: int, num_tokens: int) -> Generator[None, None, int]:
    """The largest number, unless a smaller one is clearly faster in most rounds.

    Numbers are measured in turns, so that another program that runs for a moment slows all of them,
    or is outvoted by the other rounds.
    """
    powers = range(max_threads.bit_length() + 1)
    counts = sorted({min(2**power, max_threads) for power in powers}, reverse=True)
    if len(counts) == 1 or _pass_s(target, max_threads, num_tokens) > _LONG_S:
        return max_threads  # a large model gains by all cores, and its passes delay loading
    rounds: list[dict[int, float]] = []
    for _ in range(_ROUNDS):
        rounds.append({})
        for count in counts:
            yield
            rounds[-1][count] = _pass_s(target, count, num_tokens)
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
