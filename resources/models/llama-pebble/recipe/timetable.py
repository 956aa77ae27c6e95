"""Fits a recipe into the time that there is: how much of each stage is run."""

from __future__ import annotations

import json
import logging
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from medusa_core.errors import TrainingError
from medusa_core.training.precision import trains_in_bf16
from recipe.export import write_json
from recipe.muon import network_optimizers
from recipe.network import PebbleNetwork, initialise
from recipe.packing import PackedRows, batch_at
from recipe.recipe import PolishRecipe, Recipe, Schedule
from recipe.stages import weighted_loss

log = logging.getLogger(__name__)

SHARES_FILE = "shares.json"

# What a token costs in tokens of pretraining, by the rates of the run in docs/recipe.md: of chat
# tuning, of the polish, drawn from the network, in one epoch of the heads, said by the engine.
_TUNED, _POLISHED, _DRAWN, _BY_HEADS, _OUTPUT = 1.1, 1.7, 2.9, 0.7, 1.4
_PART_USED = 0.5  # of the length that an answer may have
_KEPT_BACK = 0.05  # of the time, for what the last stage takes longer than it should
_LEAST = 0.02  # share of a stage that is run even where no time is left
_REPORT_S = 20.0  # of work before the pace is read off it
_STEPS_TRIED = 5


def costs(recipe: Recipe) -> dict[str, float]:
    """What each stage costs, in the order of the stages, in tokens of pretraining."""
    heads, phrases = recipe.heads, recipe.phrases
    of_heads = sum(heads.num_answers.values()) * heads.max_new_tokens * _PART_USED
    answer_s = phrases.num_answers * phrases.max_new_tokens * _PART_USED
    num_asked = sum(source.num_asked for source in recipe.sources)
    return {
        "pretrain": recipe.pretrain.num_steps * recipe.pretrain.tokens_per_step,
        "tune": recipe.tune.num_steps * recipe.tune.tokens_per_step * _TUNED,
        "polish": sum(_polish_cost(polish, num_asked) for polish in recipe.polishes),
        "heads": of_heads * (_DRAWN + heads.num_epochs * _BY_HEADS),
        "phrases": answer_s * _OUTPUT,
    }


def _polish_cost(polish: PolishRecipe, num_asked: int) -> float:
    answer = polish.max_new_tokens * _PART_USED
    num_rows = polish.schedule.num_rows + polish.num_tune_rows + polish.num_sum_rows
    step = num_rows * polish.schedule.row_length + polish.num_flawed * answer
    drawn = polish.num_rounds * num_asked * answer
    return polish.schedule.num_steps * step * _POLISHED + drawn * _DRAWN


def scaled(recipe: Recipe, stage: str, share: float) -> Recipe:
    """The recipe with a share of one stage's steps or answers."""

    def part(number: int) -> int:
        return math.ceil(number * share)

    def shorter(schedule: Schedule) -> Schedule:
        return replace(schedule, num_steps=part(schedule.num_steps))

    if stage == "pretrain":
        return replace(recipe, pretrain=shorter(recipe.pretrain))
    if stage == "tune":
        return replace(recipe, tune=shorter(recipe.tune))
    if stage == "polish":
        polishes = [replace(one, schedule=shorter(one.schedule)) for one in recipe.polishes]
        sources = [replace(one, num_asked=part(one.num_asked)) for one in recipe.sources]
        return replace(recipe, polishes=tuple(polishes), sources=tuple(sources))
    if stage == "heads":
        answers = {warmth: part(number) for warmth, number in recipe.heads.num_answers.items()}
        return replace(recipe, heads=replace(recipe.heads, num_answers=answers))
    numbers = replace(recipe.phrases, num_answers=part(recipe.phrases.num_answers))
    return replace(recipe, phrases=numbers)


class Timetable:
    """How much of each stage of a run is done, in shares that are kept in a file of the run.

    Without an end it is all. With one, the stages that are left are fitted into the time that is
    left whenever one begins, by the pace of those before.
    """

    def __init__(
        self,
        recipe: Recipe,
        run_dir: Path,
        within_s: float | None,
        rate: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the clock.

        Args:
            recipe: The whole one.
            run_dir: Keeps the shares, so that a resumed stage goes on as it was begun.
            within_s: Seconds from now in which all should be done; None if there is no end.
            rate: Tries out how many tokens of pretraining a second takes, before any are done.
            clock: Seconds.
        """
        self._recipe, self._costs = recipe, costs(recipe)
        self._file = run_dir / SHARES_FILE
        self._ends_s = None if within_s is None else clock() + within_s * (1 - _KEPT_BACK)
        self._measure_rate, self._clock = rate, clock
        self._done = self._spent_s = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[Recipe]:
        """Run one stage, by the recipe that is given.

        Raises:
            TrainingError: The time is too short to begin with.
        """
        shares: dict[str, float] = json.loads(self._file.read_text()) if self._file.exists() else {}
        started_before = name in shares
        if not started_before:
            shares[name] = self._share(name)
            write_json(self._file, shares)
        started_s = self._clock()
        yield scaled(self._recipe, name, shares[name])
        if not started_before:
            self._done += self._costs[name] * shares[name]
            self._spent_s += self._clock() - started_s

    def _share(self, name: str) -> float:
        if self._ends_s is None:
            return 1.0
        names = list(self._costs)
        wanted = sum(self._costs[later] for later in names[names.index(name) :])
        known = self._spent_s > _REPORT_S
        rate = self._done / self._spent_s if known else self._measure_rate()
        left_s = self._ends_s - self._clock()
        share = min(1.0, left_s * rate / wanted)
        if share < _LEAST and name == names[0]:
            raise TrainingError(
                f"There are {max(left_s, 0) / 60:.1f} minutes for what takes "
                f"{wanted / rate / 60:.0f} on this machine.",
                "Allow a fiftieth of that at least with --within, or choose a smaller --size.",
            )
        log.info("%s: %.2f of it, with %.1f minutes left", name, share, left_s / 60)
        return max(share, _LEAST)


def measure_rate(recipe: Recipe, run_dir: Path, device: str) -> float:
    """Tokens of pretraining in a second, by a few steps of a network that is thrown away."""
    network = PebbleNetwork(recipe.size)
    initialise(network, recipe.seed)
    network.to(device)
    optimizers = network_optimizers(network, recipe.pretrain)
    rows = PackedRows.load(run_dir / "pretrain.npz")
    times = []
    for step in range(_STEPS_TRIED):
        started_s = time.perf_counter()
        batch = batch_at(rows, step, recipe.pretrain.num_rows, 1.0, recipe.seed)
        loss = weighted_loss(network, batch.to(device), trains_in_bf16(device))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizers.step(step)
        float(loss.detach())  # waits for the device
        times.append(time.perf_counter() - started_s)
    return recipe.pretrain.tokens_per_step / statistics.median(times[1:])
