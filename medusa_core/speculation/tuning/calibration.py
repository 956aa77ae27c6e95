"""Measures what a step of the loaded model costs on this machine."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import torch
from torch import Tensor

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
from medusa_core.speculation.tuning.costs import (
    MOST_ROWS,
    StepCosts,
    rising,
    usual_s,
)
from medusa_core.speculation.tuning.source_costs import (
    SourceTimer,
    source_cost_of,
)

ROW_COUNTS = (1, 2, 4, 7, 8, 12, 16, 24, 32, 48, MOST_ROWS)
LENGTHS = (64, 768)
# Steps that bring layers from below take seconds, and hardly more for many rows.
OFFLOADED_ROW_COUNTS = (1, 8, 24, 48, MOST_ROWS)
_OFFLOADED_STEPS = 12  # of one row: so long may they be measured
BUDGET_S = {"cpu": 2.0, "cuda": 7.0}
_TURNS = 5
_STEPS_IN_A_TURN = 3
_WARM_S = 0.002
_DRAFT_ROWS = 4


@torch.inference_mode()
def measure_costs(target: Target, budget_s: float | None = None) -> StepCosts:
    """Usual seconds of steps and of drafts.

    All row counts are measured in turns, so that a short slowdown doesn't affect only one.

    Args:
        target: A loaded target.
        budget_s: Seconds that this may take. A step that isn't reached in this time is no
            candidate for decoding either: it is too slow.
    """
    if budget_s is None:
        budget_s = BUDGET_S[target.precision.device.type]
    # Caches that are in use may leave less than was planned.
    others = len(LENGTHS) * MOST_ROWS + sum(LENGTHS[:-1])
    room = min(target.config.context_tokens, target.caches.free_rows) - others
    lengths = tuple(sorted({max(1, min(length, room)) for length in LENGTHS}))
    is_offloaded = target.plan.placement is not None
    steps = _Steps(target, lengths[:1] if is_offloaded else lengths, is_offloaded)
    state = steps.state()
    if is_offloaded:
        budget_s = max(budget_s, _OFFLOADED_STEPS * steps.step_s(1))
    ends = time.perf_counter() + budget_s
    greedy, drawn = (
        SourceTimer(target, rule, state, lambda: steps.step_s(steps.draft_rows))
        for rule in ("greedy", "sample")
    )
    for _ in range(_TURNS):
        steps.measure(ends)
        greedy.measure(ends)
        drawn.measure(ends)
    return replace(steps.costs(), source_costs=source_cost_of(greedy, drawn))


class _Steps:
    """Steps of all row counts behind all lengths.

    Attributes:
        target: Whose steps they are.
        draft_rows: Of a usual tree.
    """

    def __init__(self, target: Target, lengths: tuple[int, ...], is_offloaded: bool) -> None:
        self.target = target
        self._caches = {length: _filled_cache(target, length) for length in lengths}
        most = min(kv.most_rows for kv in self._caches.values())
        counts = OFFLOADED_ROW_COUNTS if is_offloaded else ROW_COUNTS
        self._counts = tuple(rows for rows in counts if rows <= most)
        self.draft_rows = min(_DRAFT_ROWS, most)
        self._rule = rule_registry().get("greedy").build(GenerateSettings())
        self._lengths = lengths
        self._seconds: dict[tuple[int, int], list[float]] = {}
        # Made before, as there must be no pause between steps: threads that help fall asleep in it,
        # and for a while after waking they share a processor.
        self._trees = {
            rows: _filled_tree(target, rows) for rows in {*self._counts, self.draft_rows}
        }

    def measure(self, ends: float) -> None:
        """Let each have its turn; none but the first begins after `ends`."""
        for rows, length in itertools.product(self._counts, self._lengths):
            known = self._seconds.get((length, rows), [])
            if time.perf_counter() > ends and (known or rows > 1):
                return
            # The first steps of a turn pay for the change of shape and find the weights gone from
            # the processor's cache, which a run of equal steps never pays; they are dropped,
            # unless the very first was so long that this doesn't matter.
            first_s = self.step_s(rows, length)
            if first_s > (ends - time.perf_counter()) / 20:
                self._seconds[length, rows] = known or [first_s]
                continue
            for _ in range(int(_WARM_S / first_s)):
                self.step_s(rows, length)
            turn = [self.step_s(rows, length) for _ in range(_STEPS_IN_A_TURN)]
            self._seconds[length, rows] = known + turn

    def step_s(self, rows: int, length: int | None = None) -> float:
        """Seconds of a step, behind the shortest length if none is said."""
        kv = self._caches[self._lengths[0] if length is None else length]
        return _step_s(self.target, self._rule, self._trees[rows], kv)

    def state(self) -> Tensor:
        """What the target says of a root. [1, (1 + taps) · hidden]"""
        kv = self._caches[self._lengths[0]]
        return self.target.runner.verify(PlacedTree(self._trees[1], kv))

    def costs(self) -> StepCosts:
        """Of the row counts that were reached."""
        usual = {case: usual_s(measured) for case, measured in self._seconds.items()}
        rows = [n for n in self._counts if all((length, n) in usual for length in self._lengths)]
        seconds = (rising([usual[length, n] for n in rows]) for length in self._lengths)
        return StepCosts(self._lengths, tuple(rows), tuple(seconds))


def _filled_cache(target: Target, length: int) -> KvCache:
    kv = target.allocate_cache(length + MOST_ROWS)
    kv.fill(length)
    return kv


def _filled_tree(target: Target, rows: int) -> TokenTree:
    chain = TreeShape.from_paths([(0,) * depth for depth in range(1, rows)])
    shape = chain if target.trees is None else target.trees.tree(rows)
    return TokenTree(shape, (0,) * shape.num_nodes)


def _step_s(target: Target, rule: Rule, tree: TokenTree, kv: KvCache) -> float:
    started = time.perf_counter()
    logits = target.runner.logits(target.runner.verify(PlacedTree(tree, kv)))
    # The rule's choice also waits for the device.
    rule.walk(tree, logits, WalkContext((0,) * (kv.length + 1), 0))
    return time.perf_counter() - started
