"""Step costs of the loaded model on this machine: T(n), the time of a step with n rows."""

from __future__ import annotations

import statistics
import time

import torch

from medusa_core.engine.rule import Rule, rule_registry
from medusa_core.kv.cache import KvCache
from medusa_core.messages import GenerateSettings
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import WalkContext

ROW_COUNTS = (1, 4, 8, 16, 24, 32, 48, 64)
_CONTEXT_TOKENS = 192
_REPEATS = 7
_STEPS_IN_A_ROW = 2
_AS_FAST = 0.97  # closer than this, measurements don't tell speeds apart


@torch.inference_mode()
def measure_step_s(target: Target) -> dict[int, float]:
    """Median seconds of one verification per row count, with a cache of usual length.

    Args:
        target: A loaded target.

    Returns:
        Seconds by row count. Without heads only one row is measured.
    """
    counts = ROW_COUNTS if target.trees is not None else ROW_COUNTS[:1]
    length = min(_CONTEXT_TOKENS, max(1, target.config.context_tokens - max(counts)))
    kv = target.runner.new_cache(length + max(counts))
    target.runner.extend([0] * length, kv)
    trees = {rows: _filled_tree(target, rows) for rows in counts}
    rule = rule_registry().get("greedy").build(GenerateSettings())
    seconds: dict[int, list[float]] = {rows: [] for rows in counts}
    # Row counts take turns, so that a machine that slows down slows them all. The first step of a
    # turn is dropped: it pays for the change of shape, which a run of equal steps never pays.
    for _ in range(_REPEATS):
        for rows, tree in trees.items():
            _verify_s(target, rule, tree, kv)
            for _ in range(_STEPS_IN_A_ROW):
                seconds[rows].append(_verify_s(target, rule, tree, kv))
    return {rows: statistics.median(measured) for rows, measured in seconds.items()}


@torch.inference_mode()
def measure_draft_s(target: Target) -> float:
    """Median seconds that the heads take for the largest tree; 0 without heads."""
    if target.heads is None:
        return 0.0
    hidden = torch.zeros(
        target.config.hidden_size, dtype=target.precision.compute, device=target.precision.device
    )
    ranks = [10] * target.heads.num_heads
    measured = []
    for _ in range(_REPEATS + 1):
        started = time.perf_counter()
        target.heads.ranked(hidden, ranks)
        measured.append(time.perf_counter() - started)
    return statistics.median(measured[1:])


def best_rows(target: Target, step_s: dict[int, float], draft_s: float) -> int:
    """The row count with the most tokens per second: the largest τ(n) / (T(n) + draft time).

    Of row counts that are as fast as the fastest, the largest: it takes fewer steps, so it gains
    where the model's step is slower than it was here.

    Args:
        target: A loaded target.
        step_s: From `measure_step_s`.
        draft_s: From `measure_draft_s`; a step of one row drafts nothing.
    """
    if target.trees is None:
        return 1
    trees = target.trees

    def tokens_per_s(rows: int) -> float:
        drafting = draft_s if rows > 1 else 0.0
        return trees.expected_length(trees.tree(rows)) / (step_s[rows] + drafting)

    speeds = {rows: tokens_per_s(rows) for rows in step_s}
    fastest = max(speeds.values())
    return max(rows for rows, speed in speeds.items() if speed >= _AS_FAST * fastest)


def _filled_tree(target: Target, rows: int) -> TokenTree:
    shape = TreeShape.root_only() if target.trees is None else target.trees.tree(rows)
    return TokenTree(shape, (0,) * shape.num_nodes)


def _verify_s(target: Target, rule: Rule, tree: TokenTree, kv: KvCache) -> float:
    started = time.perf_counter()
    logits = target.runner.logits(target.runner.verify(tree, kv))
    # The rule's choice also waits for the device.
    rule.walk(tree, logits, WalkContext((0,) * (kv.length + 1), 0))
    elapsed = time.perf_counter() - started
    kv.truncate(kv.length)
    return elapsed
