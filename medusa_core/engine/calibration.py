"""Measures what a step of the loaded model costs on this machine."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import torch

from medusa_core.engine.costs import StepCosts, usual_s
from medusa_core.engine.drafter import Observation, drafter_registry
from medusa_core.engine.generation import Generation
from medusa_core.engine.rule import Rule, rule_registry
from medusa_core.engine.session import Session
from medusa_core.engine.tuner import Tuner
from medusa_core.kv.cache import KvCache
from medusa_core.messages import ChatMessage, Generate, GenerateSettings, Role
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import RowBudget, WalkContext

ROW_COUNTS = (1, 2, 4, 7, 8, 12, 16, 24, 32, 48, 64)
LENGTHS = (64, 768)
BUDGET_S = {"cpu": 2.0, "cuda": 7.0}
_ROUNDS = 5
_STEPS_IN_A_ROW = 3
_WARM_S = 0.002
_DRAFT_ROWS = 4
_A_LONG_STEP_S = 0.005
_LEAST_S = 1e-7  # what noise leaves of a difference
_PLAIN_STEPS = 200  # helpers need several milliseconds until each has a processor of its own


@torch.inference_mode()
def measure_costs(target: Target, budget_s: float | None = None) -> StepCosts:
    """Usual seconds of steps, of drafts, and of what lies around them.

    Args:
        target: A loaded target.
        budget_s: Seconds that this may take. A step that isn't reached in this time is no
            candidate for decoding either: it is too slow.
    """
    if budget_s is None:
        budget_s = BUDGET_S[target.precision.device.type]
    ends = time.perf_counter() + budget_s
    # The caches of all lengths together are no larger than the one that was planned.
    room = target.config.context_tokens - len(LENGTHS) * max(ROW_COUNTS) - sum(LENGTHS[:-1])
    lengths = tuple(sorted({max(1, min(length, room)) for length in LENGTHS}))
    seconds = _measure_steps(target, lengths, ends)
    rows = [rows for rows in ROW_COUNTS if all((length, rows) in seconds for length in lengths)]
    costs = StepCosts(
        lengths=lengths,
        rows=tuple(rows),
        seconds=tuple(
            _rising([usual_s(seconds[length, count]) for count in rows]) for length in lengths
        ),
        draft_s=_measure_drafts(target, "greedy", lengths[0], ends),
        drawn_draft_s=_measure_drafts(target, "sample", lengths[0], ends),
    )
    overhead_s = max(0.0, _plain_step_s(target, ends) - costs.step_s(1, lengths[0]))
    return replace(costs, overhead_s=overhead_s)


def _measure_steps(
    target: Target, lengths: tuple[int, ...], ends: float
) -> dict[tuple[int, int], list[float]]:
    """Seconds by (length, rows). Row counts take turns, so that a slow moment slows them all."""
    rule = rule_registry().get("greedy").build(GenerateSettings())
    seconds: dict[tuple[int, int], list[float]] = {}
    cases = list(itertools.product(ROW_COUNTS, lengths))
    # Made before, as there must be no pause between steps: threads that help fall asleep in it, and
    # for a while after waking they share a processor.
    trees = {rows: _filled_tree(target, rows) for rows in ROW_COUNTS}
    caches = {length: _filled_cache(target, length) for length in lengths}
    for turn in range(_ROUNDS):
        for rows, length in cases:
            is_known = (length, rows) in seconds
            if time.perf_counter() > ends and (is_known or rows > 1):
                return seconds
            tree, kv = trees[rows], caches[length]
            # The first steps of a turn pay for the change of shape and find the weights gone from
            # the processor's cache, which a run of equal steps never pays; they are dropped,
            # unless the very first was so long that this doesn't matter.
            first_s = _step_s(target, rule, tree, kv)
            known = seconds.setdefault((length, rows), [first_s] if turn == 0 else [])
            if first_s > (ends - time.perf_counter()) / 20:
                continue
            if turn == 0:
                known.clear()
            for _ in range(int(_WARM_S / first_s)):
                _step_s(target, rule, tree, kv)
            known.extend(_step_s(target, rule, tree, kv) for _ in range(_STEPS_IN_A_ROW))
    return seconds


def _rising(seconds: list[float]) -> tuple[float, ...]:
    """More rows never take less; what says so is noise in the lower count."""
    return tuple(itertools.accumulate(reversed(seconds), min))[::-1]


def _measure_drafts(target: Target, rule_name: str, length: int, ends: float) -> tuple[float, ...]:
    """Seconds that a draft takes longer with one head, with two, ..."""
    if target.heads is None:
        return ()
    rule = rule_registry().get(rule_name).build(GenerateSettings(rule=rule_name))
    drafters = [
        drafter_registry().get("composite").build(target, RowBudget(_DRAFT_ROWS, num_heads=count))
        for count in range(target.heads.num_heads + 1)
    ]
    tree, kv = _filled_tree(target, _DRAFT_ROWS), _filled_cache(target, length)
    like = target.runner.verify(tree, kv)[:1]
    step_s = 0.0
    dice = torch.Generator().manual_seed(0)
    places = itertools.count(1, target.heads.num_heads)  # noise is kept, but only for its place
    seconds: list[list[float]] = [[] for _ in drafters]
    for turn in range(3 * _ROUNDS):
        if turn >= 3 and time.perf_counter() > ends:
            break
        for drafter, measured in zip(drafters, seconds, strict=True):
            # As in decoding nothing is as it was a moment before: the processor can't have learned
            # which way the work goes, and the target takes what drafts read out of its cache. (A
            # target of long steps has heads that are larger than that, too.)
            states = torch.randn(like.shape, generator=dice).to(like)
            *text, root_id = torch.randint(target.config.vocab_size, (32,), generator=dice).tolist()
            drafter.begin(text)
            drafter.observe(Observation([root_id], states, chance=rule.chance(next(places))))
            if step_s < _A_LONG_STEP_S:
                step_s = _step_s(target, rule, tree, kv)
            started = time.perf_counter()
            drafter.propose(root_id, _DRAFT_ROWS)
            measured.append(time.perf_counter() - started)
    without, *usual = map(usual_s, seconds)
    return _rising([max(_LEAST_S, with_heads - without) for with_heads in usual])


def _plain_step_s(target: Target, ends: float) -> float:
    """Seconds of a step of plain decoding, all that surrounds it included."""
    settings = GenerateSettings(drafter="none", max_new_tokens=_PLAIN_STEPS)
    target = replace(target, eos_token_ids=frozenset())  # to forbid the end would cost time itself
    request = Generate("calibration", "calibration", (ChatMessage(Role.USER, "hi"),), settings)
    generation = Generation(request, target, Session(target), Tuner(target))
    measured: list[float] = []
    while not generation.is_done and (len(measured) < 3 or time.perf_counter() < ends):
        started = time.perf_counter()
        generation.advance()
        measured.append(time.perf_counter() - started)
    return usual_s(measured[1:] or measured)


def _filled_cache(target: Target, length: int) -> KvCache:
    kv = target.runner.new_cache(length + max(ROW_COUNTS))
    kv.fill(length)
    return kv


def _filled_tree(target: Target, rows: int) -> TokenTree:
    chain = TreeShape.from_paths([(0,) * depth for depth in range(1, rows)])
    shape = chain if target.trees is None else target.trees.tree(rows)
    return TokenTree(shape, (0,) * shape.num_nodes)


def _step_s(target: Target, rule: Rule, tree: TokenTree, kv: KvCache) -> float:
    started = time.perf_counter()
    logits = target.runner.logits(target.runner.verify(tree, kv))
    # The rule's choice also waits for the device.
    rule.walk(tree, logits, WalkContext((0,) * (kv.length + 1), 0))
    return time.perf_counter() - started
