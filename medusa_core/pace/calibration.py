"""Measures what a step of the loaded model costs on this machine."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.drafters.observation import Observation
from medusa_core.drafters.sources.heads_source import HeadsSource, medusa_heads
from medusa_core.kv.cache import KvCache
from medusa_core.messages import GenerateSettings
from medusa_core.pace.costs import MOST_ROWS, StepCosts, usual_s
from medusa_core.rules.rule import Rule, rule_registry
from medusa_core.runner.runner import PlacedTree
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import RowBudget, WalkContext

ROW_COUNTS = (1, 2, 4, 7, 8, 12, 16, 24, 32, 48, MOST_ROWS)
LENGTHS = (64, 768)
BUDGET_S = {"cpu": 2.0, "cuda": 7.0}
_TURNS = 5
_STEPS_IN_A_TURN, _DRAFTS_IN_A_TURN = 3, 8
_LEAST_DRAFTS = 3
_WARM_S = 0.002
_DRAFT_ROWS = 4
_A_LONG_STEP_S = 0.005
_LEAST_S = 1e-7  # what noise leaves of a difference


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
    ends = time.perf_counter() + budget_s
    # Caches that are in use may leave less than was planned.
    others = len(LENGTHS) * MOST_ROWS + sum(LENGTHS[:-1])
    room = min(target.config.context_tokens, target.caches.free_rows) - others
    lengths = tuple(sorted({max(1, min(length, room)) for length in LENGTHS}))
    steps = _Steps(target, lengths)
    asking, asking_drawn = _Asking(steps, "greedy"), _Asking(steps, "sample")
    for _ in range(_TURNS):
        steps.measure(ends)
        asking.measure(ends)
        asking_drawn.measure(ends)
    return replace(steps.costs(), draft_s=asking.usual_s(), drawn_draft_s=asking_drawn.usual_s())


class _Steps:
    """Steps of all row counts behind all lengths.

    Attributes:
        target: Whose steps they are.
    """

    def __init__(self, target: Target, lengths: tuple[int, ...]) -> None:
        self.target = target
        self._rule = rule_registry().get("greedy").build(GenerateSettings())
        self._lengths = lengths
        self._seconds: dict[tuple[int, int], list[float]] = {}
        # Made before, as there must be no pause between steps: threads that help fall asleep in it,
        # and for a while after waking they share a processor.
        self._trees = {rows: _filled_tree(target, rows) for rows in ROW_COUNTS}
        self._caches = {length: _filled_cache(target, length) for length in lengths}

    def measure(self, ends: float) -> None:
        """Let each have its turn; none but the first begins after `ends`."""
        for rows, length in itertools.product(ROW_COUNTS, self._lengths):
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
        """The target's state at a root. [1, hidden]"""
        kv = self._caches[self._lengths[0]]
        return self.target.runner.verify(PlacedTree(self._trees[1], kv))

    def costs(self) -> StepCosts:
        """Of the row counts that were reached."""
        usual = {case: usual_s(measured) for case, measured in self._seconds.items()}
        rows = [n for n in ROW_COUNTS if all((length, n) in usual for length in self._lengths)]
        seconds = (_rising([usual[length, n] for n in rows]) for length in self._lengths)
        return StepCosts(self._lengths, tuple(rows), tuple(seconds))


class _Asking:
    """Asking one head, two, ...; nothing without heads."""

    def __init__(self, steps: _Steps, rule_name: str) -> None:
        self._steps, target = steps, steps.target
        self._rule = rule_registry().get(rule_name).build(GenerateSettings(rule=rule_name))
        heads = medusa_heads(target)
        counts = range(1, 1 + heads.num_heads) if heads is not None else range(0)
        self._sources = [
            HeadsSource(heads, RowBudget(MOST_ROWS, levels=count))
            for count in counts
            if heads is not None
        ]
        self._seconds: list[list[float]] = [[] for _ in self._sources]
        self._like = steps.state()
        self._step_s = 0.0
        self._dice = torch.Generator().manual_seed(0)
        self._places = itertools.count(1, len(self._sources))  # noise is kept for its place alone

    def measure(self, ends: float) -> None:
        """Let each have some turns; none but the first few begins after `ends`."""
        for _ in range(_DRAFTS_IN_A_TURN):
            for source, measured in zip(self._sources, self._seconds, strict=True):
                if len(measured) >= _LEAST_DRAFTS and time.perf_counter() > ends:
                    return
                measured.append(self._asking_s(source))

    def usual_s(self) -> tuple[float, ...]:
        """Seconds to ask one head, two, ..."""
        return _rising([max(_LEAST_S, usual_s(measured)) for measured in self._seconds])

    def _asking_s(self, source: HeadsSource) -> float:
        # As in decoding nothing is as it was a moment before: the processor can't have learned
        # which way the work goes, and the target takes what heads read out of its cache. (A target
        # of long steps has heads that are larger than that, too.)
        target, dice = self._steps.target, self._dice
        states = torch.randn(self._like.shape, generator=dice).to(self._like)
        root_id = int(torch.randint(target.config.vocab_size, (1,), generator=dice))
        chance = self._rule.chance(next(self._places))
        source.observe(Observation([root_id], states, chance=chance))
        if self._step_s < _A_LONG_STEP_S:
            self._step_s = self._steps.step_s(_DRAFT_ROWS)
        started = time.perf_counter()
        source.start(root_id, MOST_ROWS)
        return time.perf_counter() - started


def _rising(seconds: list[float]) -> tuple[float, ...]:
    """More rows never take less; what says so is noise in the lower count."""
    return tuple(itertools.accumulate(reversed(seconds), min))[::-1]


def _filled_cache(target: Target, length: int) -> KvCache:
    kv = target.lend_cache(length + MOST_ROWS)
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
