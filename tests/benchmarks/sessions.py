"""Plain decoding of several conversations in one pass, against one conversation alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from medusa_core.bench.step_race import OnTimed
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)

LENGTH = 256  # tokens that each conversation has behind it
ROOM = LENGTH + 32
_TURNS = 3
_STEPS = 4  # of a turn
_ANY_ID = 1
_MOST = 64


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """Speed of decoding several conversations together.

    Attributes:
        sessions: How many conversations decode together.
        tokens_per_s: Of one conversation alone ("one"), and of all in one pass ("together").
        over_one: The one ÷ the other.
    """

    sessions: int
    tokens_per_s: dict[str, float]
    over_one: float


def measure_sessions(target: Target, num_sessions: int, on_timed: OnTimed) -> SessionsReport:
    """Decode plainly after 256 tokens each, alone and together, in turns.

    Args:
        target: A target whose caches have `ROOM` rows for each.
        num_sessions: How many decode together.
        on_timed: Called with what is being measured.

    Raises:
        OutOfMemoryError: The caches have less room.
        RequestError: The number makes no sense.
    """
    if not 2 <= num_sessions <= _MOST:
        raise RequestError(f"{num_sessions} sessions can't be compared.", f"Choose 2 to {_MOST}.")
    caches = [target.allocate_cache(ROOM) for _ in range(num_sessions)]
    for kv in caches:
        kv.fill(LENGTH)
    root = TokenTree(TreeShape.root_only(), (_ANY_ID,))
    placed = [PlacedTree(root, kv) for kv in caches]
    contestants = {"one": placed[:1], "together": placed}
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(_TURNS):
        for name, trees in contestants.items():
            on_timed(f"turn {turn + 1} of {_TURNS}: {name}")
            speeds[name].append(_tokens_per_s(target, trees))
    medians = {name: statistics.median(measured) for name, measured in speeds.items()}
    return SessionsReport(num_sessions, medians, medians["together"] / medians["one"])


@torch.inference_mode()
def _tokens_per_s(target: Target, placed: Sequence[PlacedTree]) -> float:
    started = time.perf_counter()
    for _ in range(_STEPS):
        scores = target.runner.logits(target.runner.verify(*placed))
        scores.argmax(dim=-1).tolist()
        for each in placed:
            each.kv.commit((0,))
    seconds = time.perf_counter() - started
    for each in placed:
        each.kv.truncate(LENGTH)
    return _STEPS * len(placed) / seconds


def sessions_text(report: SessionsReport) -> str:
    """Format the figures for people."""
    one, together = report.tokens_per_s["one"], report.tokens_per_s["together"]
    return (
        f"one conversation: {one:.2f} tokens/s\n"
        f"{report.sessions} in one pass: {together:.2f} tokens/s, {report.over_one:.2f} × as many"
    )
