"""Time steps of a model in turns with llama.cpp's, of one file or of random weights."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from medusa_core.bench.llamacpp import LlamaCpp
from medusa_core.bench.step_cost import copy_gb_per_s
from medusa_core.loading.memory.estimate import read_bytes
from medusa_core.loading.target import Target
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)

LENGTH = 512  # tokens of the context
ROWS = (1, 2, 4, 8, 16, 32, 64)
_ROUNDS = 3
_CHEAP_ROWS = 16  # up to which a step is measured twice a round
_ROOM = LENGTH + max(ROWS)

OnTimed = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StepRace:
    """Times of both engines.

    Attributes:
        ours: Median seconds of a step by its rows.
        llamacpp: Median seconds of a step in llama.cpp by its rows; empty without it.
        prefill_s: Median seconds of reading 512 tokens, by contestant.
        copy_gb_per_s: Bandwidth of a plain copy, reads and writes together.
        reached_gb_per_s: Bytes of our step of one row ÷ its seconds.
        load_s: Seconds of our load.
    """

    ours: dict[str, float]
    llamacpp: dict[str, float]
    prefill_s: dict[str, float]
    copy_gb_per_s: float
    reached_gb_per_s: float
    load_s: float


def race_steps(target: Target, load_s: float, peer: Path | None, on_timed: OnTimed) -> StepRace:
    """Time steps of all row counts with a context of 512 tokens.

    Args:
        target: A loaded target with room for 576 tokens.
        load_s: Seconds of its load.
        peer: GGUF file of the same weights for llama.cpp, or None.
        on_timed: Called with what is being measured, for people.
    """
    contestants: dict[str, OwnSteps | _LlamaCppSteps] = {"ours": OwnSteps(target)}
    if peer is not None:
        on_timed("llama.cpp loads the weights")
        contestants["llamacpp"] = _LlamaCppSteps(peer)
    read_s = {name: list[float]() for name in contestants}
    seconds = {name: {rows: list[float]() for rows in ROWS} for name in contestants}
    for index in range(_ROUNDS):
        for name, contestant in contestants.items():
            on_timed(f"round {index + 1} of {_ROUNDS}: {name} reads {LENGTH} tokens")
            read_s[name].append(contestant.prefill_s())
        for rows in ROWS:
            on_timed(f"round {index + 1} of {_ROUNDS}: {rows} rows")
            for _ in range(2 if rows <= _CHEAP_ROWS else 1):
                for name, contestant in contestants.items():
                    seconds[name][rows].append(contestant.step_s(rows))
    medians = {
        name: {str(rows): statistics.median(measured) for rows, measured in by_rows.items()}
        for name, by_rows in seconds.items()
    }
    nbytes = read_bytes(target.config, target.formats, rows=1) + LENGTH * target.caches.row_bytes
    return StepRace(
        ours=medians["ours"],
        llamacpp=medians.get("llamacpp", {}),
        prefill_s={name: statistics.median(measured) for name, measured in read_s.items()},
        copy_gb_per_s=copy_gb_per_s(target.precision.device),
        reached_gb_per_s=nbytes / medians["ours"]["1"] / 1e9,
        load_s=load_s,
    )


def race_table(race: StepRace) -> str:
    """Format the times for a terminal."""
    one = race.llamacpp.get("1", race.ours["1"])
    lines = [f"{'rows':>6}{'ours':>12}{'llama.cpp':>12}   over one row of {'llama.cpp':<12}"]
    for rows, ours in race.ours.items():
        theirs = race.llamacpp.get(rows)
        cells = [f"{ours * 1e3:9.1f} ms", "-" if theirs is None else f"{theirs * 1e3:9.1f} ms"]
        shares = f"{ours / one:8.2f}" + ("" if theirs is None else f"{theirs / one:8.2f}")
        lines.append(f"{rows:>6}{cells[0]:>12}{cells[1]:>12}{shares}")
    read = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in race.prefill_s.items())
    return "\n".join(
        [
            *lines,
            "",
            f"reading {LENGTH} tokens: {read}",
            f"loaded in {race.load_s:.1f} s",
            (
                f"a step of one row reads {race.reached_gb_per_s:.1f} GB/s; a copy moves "
                f"{race.copy_gb_per_s:.1f} GB/s"
            ),
        ]
    )


class OwnSteps:
    """Steps of a loaded target with a context of 512 tokens."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._kv = target.allocate_cache(_ROOM)
        # Tokens differ: equal ones would choose the same experts.
        self._trees = {
            rows: TokenTree(TreeShape.chain(rows), tuple(range(1, 1 + rows))) for rows in ROWS
        }

    @torch.inference_mode()
    def prefill_s(self) -> float:
        """Return the seconds of reading the context."""
        self._kv.truncate(0)
        started = time.perf_counter()
        rows = self._target.chunk_rows
        for first in range(0, LENGTH, rows):
            ids = range(1 + first, 1 + min(first + rows, LENGTH))
            self._target.runner.extend(ids, self._kv, only_last=True)
        return time.perf_counter() - started

    @torch.inference_mode()
    def step_s(self, rows: int) -> float:
        """Return the seconds of a step, by its number of rows."""
        runner = self._target.runner
        started = time.perf_counter()
        runner.logits(runner.verify(PlacedTree(self._trees[rows], self._kv)))
        return time.perf_counter() - started


class _LlamaCppSteps:
    """Steps of llama.cpp with a context of 512 tokens."""

    def __init__(self, path: Path) -> None:
        self._model = LlamaCpp(path, _ROOM)

    def prefill_s(self) -> float:
        """Return the seconds of reading the context."""
        self._model.clear()
        return self._seconds(range(1, 1 + LENGTH))

    def step_s(self, rows: int) -> float:
        """Return the seconds of a step, by its number of rows."""
        self._model.forget(LENGTH)
        return self._seconds(range(1, 1 + rows), all_scores=True)

    def _seconds(self, token_ids: Sequence[int], all_scores: bool = False) -> float:
        """Time the computation of some tokens."""
        started = time.perf_counter()
        self._model.compute(token_ids, all_scores)
        return time.perf_counter() - started
