"""Calibration: measure the seconds of steps and drafts of the loaded model, T(n)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.rules.rule import (
    Rule,
    rule_registry,
)
from medusa_core.speculation.tuning.source_costs import (
    SourceTimer,
    source_cost_of,
)
from medusa_core.speculation.tuning.step_costs import (
    MAX_ROWS,
    StepCosts,
    ascending,
    interpolate,
    quartile_s,
)

ROW_COUNTS = (1, 2, 4, 7, 8, 12, 16, 24, 32, 48, MAX_ROWS)
LENGTHS = (64, 768)
# Steps with offloaded layers take seconds, and hardly more for many rows.
OFFLOADED_ROW_COUNTS = (1, 8, 24, 48, MAX_ROWS)
_OFFLOADED_STEPS = 12  # plain steps: the time for measuring them
BUDGET_S = {"cpu": 2.0, "cuda": 7.0}  # for steps, and as much for drafts
_ROUNDS = 5
_STEPS_IN_A_ROUND = 3
_MIN_COUNTS = 3  # row counts that are measured whatever time is left
_MAX_STEP_S = 1.0  # longer steps are extrapolated: a request would wait until such a step ends
_MAX_PLAIN_STEPS = 4  # or this many plain steps, if that is more: requests take longer anyway
_MIN_DISTURBED_S = 0.25
_DRAFT_ROOM = 256  # rows of a drafter's own cache
_WARM_S = 0.002
_ID_STRIDE = 7919  # a prime: ids repeat only after a whole vocabulary
_DRAFT_ROWS = 4


def measure_costs(
    target: Target, budget_s: float | None = None, known: StepCosts | None = None
) -> StepCosts:
    """Measure the seconds of steps and drafts, as many as there is time for.

    Args:
        target: A loaded target.
        budget_s: Seconds for steps, and as many for drafts; None for the device's default.
        known: Costs measured earlier.
    """
    calibration = Calibration(target, known, budget_s, is_hurried=True)
    while not calibration.is_over:
        calibration.advance()
    return calibration.costs()


class Calibration:
    """Measures the costs of a target one piece at a time, so that requests can come between.

    All row counts are measured in rounds, so that a short slowdown doesn't affect one of them only.
    The first round measures everything, steps before drafts; later rounds use the time left.

    Attributes:
        is_over: The measurement has ended.
    """

    def __init__(
        self,
        target: Target,
        known: StepCosts | None = None,
        budget_s: float | None = None,
        *,
        is_hurried: bool = False,
    ) -> None:
        """Prepare the measurement.

        Args:
            target: A loaded target.
            known: Costs measured earlier, maybe under another load.
            budget_s: Limit in seconds, as in `measure_costs`.
            is_hurried: The first round ends with the budget, too, so that costs may be incomplete.
        """
        self.is_over = False
        self._target, self._is_hurried = target, is_hurried
        self._known = {} if known is None else known.source_costs
        self._budget_s = BUDGET_S[target.precision.device.type] if budget_s is None else budget_s
        self._steps = _Steps(target, known)
        self._timers: tuple[SourceTimer, ...] = ()
        self._has_rows = False
        self._wall_s = self._own_s = 0.0
        self._pieces = self._measure()

    @torch.inference_mode()
    def advance(self) -> None:
        """Measure one piece.

        Raises:
            OutOfMemoryError: Other sessions hold the rows; call it again once some are free.
        """
        try:
            if not self._has_rows:
                self._steps.reserve()
                for pool in self._target.cache_pools[1:]:
                    pool.make_room(_DRAFT_ROOM)
                self._has_rows = True
            wall_s, own_s = time.perf_counter(), time.thread_time()
            self.is_over = next(self._pieces, True)
        except OutOfMemoryError:
            self.pause()
            self._pieces = self._measure()  # an error ends a generator
            raise
        self._wall_s += time.perf_counter() - wall_s
        self._own_s += time.thread_time() - own_s
        if self.is_over:
            self.pause()

    def pause(self) -> None:
        """Release the rows; measurements are kept."""
        self._has_rows = False
        self._steps.release()
        for timer in self._timers:
            timer.close()

    @property
    def is_usable(self) -> bool:
        """Whether trees can be chosen by the measurements so far."""
        return self._steps.has_minimum

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs used the processor for most of the measurement.

        Then rows seem several times as expensive as they are, and drafting would stop for good:
        four programs on two cores leave a quarter of the time, and make a step of four rows five
        times as long as a plain one, instead of 1.4 times. Undisturbed, the thread computes for two
        thirds of the time or more. It isn't known if the thread waits for a GPU or a disk.
        """
        target, waited_s = self._target, self._wall_s - self._own_s
        computes = target.precision.device.type == "cpu" and target.plan.placement is None
        return computes and waited_s > max(_MIN_DISTURBED_S, self._wall_s / 2)

    def costs(self) -> StepCosts:
        """The costs measured so far, and earlier."""
        measured = source_cost_of(*self._timers) if self._timers else {}
        sources_done = bool(self._timers) and all(timer.is_complete for timer in self._timers)
        return replace(
            self._steps.costs(),
            source_costs={**self._known, **measured},
            is_complete=self._steps.is_complete and sources_done,
        )

    def _measure(self) -> Iterator[bool]:
        """Measure piece by piece; yields False, as the measurement isn't over."""
        steps, steps_s, drafts_s = self._steps, 0.0, 0.0
        for is_first in (True, *[False] * (_ROUNDS - 1)):
            pieces = steps.round(is_first)
            while not self._ends(
                is_first and not (self._is_hurried and steps.has_minimum), steps_s
            ):
                started = time.perf_counter()
                if not next(pieces, False):
                    break
                steps_s += time.perf_counter() - started
                yield False
            started = time.perf_counter()
            if not self._timers:
                self._timers = self._source_timers()
            drafts = itertools.chain(*(timer.round(is_first) for timer in self._timers))
            while not self._ends(is_first and not self._is_hurried, drafts_s):
                if not next(drafts, False):
                    break
                drafts_s += time.perf_counter() - started
                yield False
                started = time.perf_counter()

    def _ends(self, must_go_on: bool, spent_s: float) -> bool:
        """Whether the time is up; steps with offloaded layers get more."""
        budget_s = self._budget_s
        if self._target.plan.placement is not None:
            budget_s = max(budget_s, _OFFLOADED_STEPS * self._steps.plain_s)
        return not must_go_on and spent_s > budget_s

    def _source_timers(self) -> tuple[SourceTimer, ...]:
        """Timers of all sources, under a rule without noise and one with it."""
        steps, state = self._steps, self._steps.state()
        return tuple(
            SourceTimer(
                self._target, rule, state, lambda: steps.step_s(steps.draft_rows), self._known
            )
            for rule in ("greedy", "sample")
        )


class _Steps:
    """Measures steps of all row counts at all cache lengths.

    Attributes:
        draft_rows: Rows of a typical tree.
    """

    def __init__(self, target: Target, known: StepCosts | None) -> None:
        self._target = target
        is_offloaded = target.plan.placement is not None
        wanted = _lengths(target.config.context_tokens)
        with suppress(OutOfMemoryError):  # free rows of idle conversations mostly suffice
            target.caches.make_room(len(wanted) * MAX_ROWS + sum(wanted))
        lengths = _lengths(min(target.config.context_tokens, target.caches.free_rows))
        self._lengths = lengths[:1] if is_offloaded else lengths
        self._has_all_lengths = is_offloaded or lengths == wanted
        self._caches: dict[int, KvCache] = {}
        self.reserve()
        self._max_rows = min(MAX_ROWS, *(kv.most_rows for kv in self._caches.values()))
        counts = OFFLOADED_ROW_COUNTS if is_offloaded else ROW_COUNTS
        self._counts = tuple(rows for rows in counts if rows <= self._max_rows)
        self.draft_rows = min(_DRAFT_ROWS, self._max_rows)
        self._rule = rule_registry().get("greedy").build(GenerateSettings())
        is_comparable = known is not None and known.lengths == self._lengths
        self._known = known if is_comparable else None
        self._seconds: dict[tuple[int, int], list[float]] = {}
        # Built beforehand, as worker threads would fall asleep in a pause between steps, and share
        # a core for a while after waking up.
        self._trees = {
            rows: _filled_tree(target, rows) for rows in {*self._counts, self.draft_rows}
        }

    def reserve(self) -> None:
        """Allocate a cache of every length, if there is none yet.

        Raises:
            OutOfMemoryError: Other sessions hold the rows.
        """
        for length in self._lengths:
            if length not in self._caches:
                self._caches[length] = _filled_cache(self._target, length)

    def release(self) -> None:
        """Release the caches."""
        for kv in self._caches.values():
            self._target.caches.release(kv)
        self._caches.clear()

    def round(self, is_first: bool) -> Iterator[bool]:
        """Measure each row count at each length; in the first round only what isn't known."""
        for rows, length in itertools.product(self._counts, self._lengths):
            is_known = is_first and (length, rows) in self._seconds
            if is_known or self._is_long(rows, length):
                continue
            # The first steps of a round include the change of shape, and find the weights evicted
            # from the processor's cache, unlike later ones. They are dropped, unless they are so
            # long that this doesn't matter.
            first_s = self.step_s(rows, length)
            if first_s > _MAX_STEP_S / 10:
                self._seconds.setdefault((length, rows), []).append(first_s)
            else:
                for _ in range(int(_WARM_S / first_s)):
                    self.step_s(rows, length)
                measured = [self.step_s(rows, length) for _ in range(_STEPS_IN_A_ROUND)]
                self._seconds.setdefault((length, rows), []).extend(measured)
            if rows == 1:
                self._adopt_known(length)
            yield True

    def _adopt_known(self, length: int) -> None:
        """Use an earlier measurement, scaled to the current load."""
        known, plain_s = self._known, quartile_s(self._seconds[length, 1])
        for rows in () if known is None else known.rows[1:]:
            assert known is not None  # else there are no rows
            scale = plain_s / known.step_s(1, length)
            self._seconds.setdefault((length, rows), [scale * known.step_s(rows, length)])

    def _is_long(self, rows: int, length: int) -> bool:
        """Whether a step is expected to take too long."""
        counts = [n for n in self._counts if n < rows and (length, n) in self._seconds]
        if len(counts) < _MIN_COUNTS:
            return False
        seconds = ascending([quartile_s(self._seconds[length, n]) for n in counts])
        return interpolate(rows, counts, seconds) > max(_MAX_STEP_S, _MAX_PLAIN_STEPS * seconds[0])

    def step_s(self, rows: int, length: int | None = None) -> float:
        """Measure a step; without a length, at the shortest one."""
        kv = self._caches[self._lengths[0] if length is None else length]
        return _step_s(self._target, self._rule, self._trees[rows], kv)

    def state(self) -> Tensor:
        """Hidden state of a root. [1, (1 + taps) · hidden]"""
        kv = self._caches[self._lengths[0]]
        return self._target.runner.verify(PlacedTree(self._trees[1], kv))

    @property
    def plain_s(self) -> float:
        """Seconds of a plain step; 0 before it is measured."""
        return quartile_s(self._seconds.get((self._lengths[0], 1), [0.0]))

    @property
    def _measured(self) -> list[int]:
        """Row counts that are measured at every length."""
        return [n for n in self._counts if all((of, n) in self._seconds for of in self._lengths)]

    @property
    def has_minimum(self) -> bool:
        """Whether enough row counts are measured for extrapolation."""
        return len(self._measured) >= min(_MIN_COUNTS, len(self._counts))

    @property
    def is_complete(self) -> bool:
        """Whether every row count is measured at every length, or takes too long."""
        measured = self._measured
        return self._has_all_lengths and all(
            rows in measured or any(self._is_long(rows, length) for length in self._lengths)
            for rows in self._counts
        )

    def costs(self) -> StepCosts:
        """Costs of the measured row counts."""
        rows = self._measured
        seconds = (
            ascending([quartile_s(self._seconds[length, n]) for n in rows])
            for length in self._lengths
        )
        return StepCosts(self._lengths, tuple(rows), tuple(seconds), max_rows=self._max_rows)


def _lengths(num_rows: int) -> tuple[int, ...]:
    """Cache lengths that can be measured if all caches together have `num_rows` rows."""
    room = num_rows - len(LENGTHS) * MAX_ROWS - sum(LENGTHS[:-1])
    return tuple(sorted({max(1, min(length, room)) for length in LENGTHS}))


def _filled_cache(target: Target, length: int) -> KvCache:
    """Allocate a cache, and fill it with arbitrary rows up to a length."""
    kv = target.allocate_cache(length + MAX_ROWS)
    kv.fill(length)
    return kv


def _filled_tree(target: Target, rows: int) -> TokenTree:
    """A tree of `rows` nodes with arbitrary tokens, of the heads' shape if there are any."""
    shape = TreeShape.chain(rows) if target.trees is None else target.trees.tree(rows)
    return TokenTree(shape, _distinct_ids(shape.num_nodes, target.config.vocab_size))


def _distinct_ids(count: int, vocab_size: int) -> tuple[int, ...]:
    """Token ids that differ: equal rows would choose the same experts, and seem to cost nothing."""
    return tuple(index * _ID_STRIDE % vocab_size for index in range(count))


def _step_s(target: Target, rule: Rule, tree: TokenTree, kv: KvCache) -> float:
    """Measure the seconds of verifying a tree and walking down it."""
    started = time.perf_counter()
    logits = target.runner.logits(target.runner.verify(PlacedTree(tree, kv)))
    # The rule waits for the device.
    rule.walk(tree, logits, WalkContext((0,) * (kv.length + 1), 0))
    return time.perf_counter() - started
