"""A simulation: drafts are right as often as published heads' are, everything else is real.

Heads run, the tree that calibration chooses is verified, rows are committed; random numbers decide
which drafts count as right. It estimates the speed-up that such heads would give a model of this
shape on this machine.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.bench.llamacpp import LlamaCpp
from medusa_core.engine.loop import decode_step
from medusa_core.engine.sequence import Step
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    RowBudget,
    WalkContext,
)
from medusa_core.runtime.tree.tables import (
    Accuracies,
    typical_table,
)
from medusa_core.speculation.drafters.drafter import Drafter
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import Rule, RuleNumbers
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.row_policy import RowPolicy

ORACLES = ("vicuna-7b",)
_LENGTH = 512  # tokens that decoding starts behind
_STEPS = 24  # of a turn
_TURNS = 3
_CALIBRATION_S = 40.0
_ANY_ID = 1

OnSimulated = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of a simulation.

    Attributes:
        oracle: Whose accuracies decide.
        rows: Rows of the tree, root included.
        tau: Tokens per step.
        tokens_per_s: By contestant; medians of the turns.
        over_llamacpp: Ours with heads ÷ llama.cpp's plain decoding; None without it.
    """

    oracle: str
    rows: int
    tau: float
    tokens_per_s: dict[str, float]
    over_llamacpp: float | None


class DiceRule:
    """Accepts drafts at random, with the heads' accuracies as probabilities; see `Rule`."""

    has_numbers = False

    def __init__(self, accuracies: Accuracies, seed: int) -> None:
        self._accuracies = accuracies
        self._dice = random.Random(seed)

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        paths = {path: node for node, path in enumerate(tree.shape.paths)}
        nodes: list[int] = []
        path: tuple[int, ...] = ()
        for of_head in self._accuracies:
            path = (*path, self._right_rank(of_head))
            if path not in paths:
                break
            nodes.append(paths[path])
        return Acceptance(tuple(nodes), _ANY_ID)

    def _right_rank(self, of_head: tuple[float, ...]) -> int:
        """Return the rank of the correct draft; a rank outside of every tree if none is correct."""
        drawn = self._dice.random()
        for rank, share in enumerate(of_head):
            drawn -= share
            if drawn < 0:
                return rank
        return -1

    def chance(self, position: int) -> Chance | None:
        return None

    def numbers(
        self, row: Tensor, context: WalkContext, path: object, token_id: int
    ) -> RuleNumbers:
        return ()


def simulate(
    target: Target, oracle: str, peer: Path | None, on_simulated: OnSimulated
) -> Simulation:
    """Decode with simulated acceptance, plainly, and with llama.cpp, in turns.

    Args:
        target: A target with random heads.
        oracle: One of `ORACLES`.
        peer: The same weights as GGUF for llama.cpp, or None.
        on_simulated: Called with what is being measured.

    Raises:
        RequestError: There is no such oracle, or the target has no heads.
    """
    if oracle not in ORACLES or target.heads is None or target.trees is None:
        raise RequestError(
            f"There is no oracle {oracle!r} for this model.", f"Choose {', '.join(ORACLES)}."
        )
    on_simulated("measuring what steps cost")
    costs = measure_costs(target, _CALIBRATION_S)
    rows = RowPolicy(target, costs).rows(GenerateSettings(drafter="medusa"), _LENGTH)
    rule = DiceRule(typical_table(target.heads.num_heads).head_accuracies, seed=1)
    kv = target.allocate_cache(_LENGTH + 2 * rows)  # in turns
    ours = {name: _Decoding(target, name, rows, rule, kv) for name in ("medusa", "none")}
    theirs = None if peer is None else _Theirs(peer)
    speeds: dict[str, list[float]] = {}
    for turn in range(_TURNS):
        on_simulated(f"turn {turn + 1} of {_TURNS}")
        for name, decoding in ours.items():
            speeds.setdefault(name, []).append(decoding.tokens_per_s(_STEPS))
        if theirs is not None:
            speeds.setdefault("llamacpp", []).append(theirs.tokens_per_s(_STEPS))
    medians = {name: statistics.median(measured) for name, measured in speeds.items()}
    return Simulation(
        oracle=oracle,
        rows=rows,
        tau=ours["medusa"].tau,
        tokens_per_s=medians,
        over_llamacpp=medians["medusa"] / medians["llamacpp"] if "llamacpp" in medians else None,
    )


def simulation_text(found: Simulation) -> str:
    """Format the figures for people."""
    speeds = ", ".join(f"{name} {speed:.2f}" for name, speed in found.tokens_per_s.items())
    lines = [
        f"a simulation: drafts are right as often as {found.oracle}'s published heads",
        f"{found.rows} rows a step, {found.tau:.2f} tokens a step",
        f"tokens/s: {speeds}",
    ]
    if found.over_llamacpp is not None:
        lines.append(f"heads over llama.cpp's plain decoding: {found.over_llamacpp:.2f}")
    return "\n".join(lines)


class _Decoding:
    """Steps of one drafter after 512 tokens; see `DecodingSequence`.

    Attributes:
        tau: Tokens per step so far.
    """

    def __init__(self, target: Target, name: str, rows: int, rule: DiceRule, kv: KvCache) -> None:
        self.kv = kv
        self.drafter: Drafter = (
            drafter_registry().get(name).build(target, RowBudget(rows if name != "none" else 1))
        )
        self.rule: Rule = rule
        self.max_rows = rows
        self.context = WalkContext([], 0)
        self._history: list[int] = []
        self._runner = target.runner
        self._num_steps = self._num_tokens = 0

    @property
    def tau(self) -> float:
        return self._num_tokens / self._num_steps

    def append(self, step: Step) -> bool:
        self._history += step.token_ids
        return True

    @torch.inference_mode()
    def tokens_per_s(self, num_steps: int) -> float:
        """Decode some steps. Tokens a second."""
        self.kv.truncate(0)
        self.kv.fill(_LENGTH)
        self._history = [_ANY_ID] * (_LENGTH + 1)
        self.context = WalkContext(self._history, 0)
        self.drafter.begin(self._history)
        self._step()  # its drafts have no state to build on
        count, started = 0, time.perf_counter()
        for _ in range(num_steps):
            count += self._step()
            if self.kv.length >= _LENGTH + self.max_rows:
                self.kv.truncate(_LENGTH)
                del self._history[_LENGTH + 1 :]
        self._num_steps += num_steps
        self._num_tokens += count
        return count / (time.perf_counter() - started)

    def _step(self) -> int:
        before = len(self._history)
        for error in decode_step(self._runner, [self]).values():
            raise error
        return len(self._history) - before


class _Theirs:
    """llama.cpp's plain decoding after 512 tokens."""

    def __init__(self, path: Path) -> None:
        self._model = LlamaCpp(path, _LENGTH + 2 * _STEPS)
        self._model.compute([_ANY_ID] * _LENGTH)

    def tokens_per_s(self, num_steps: int) -> float:
        """Decode some tokens. Tokens a second."""
        self._model.forget(_LENGTH)
        started = time.perf_counter()
        for _ in range(num_steps):
            self._model.compute([_ANY_ID])
            self._model.best()
        return num_steps / (time.perf_counter() - started)
