"""Race chains, trees and the engine's choice, for every drafter at equal rows.

`bench --drafters all --growth chain,tree,auto`: all answer the same prompts in turns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from medusa_core.bench.contestant import OwnMode
from medusa_core.bench.race import RaceResult, Totals, run_race
from medusa_core.bench.synthetic import NAME as SYNTHETIC
from medusa_core.bench.synthetic import expected_tau, synthetic_spec
from medusa_core.engine.direct import generate
from medusa_core.engine.session import Session
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import AUTO_GROWTH, CHAIN, ChatMessage, GenerateSettings, Role
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.system.prompts import BenchPrompt

log = logging.getLogger(__name__)

ROWS = (2, 4, 8, 16)
_PLAIN = "none"


class GrowthEntry(NamedTuple):
    """A drafter with a growth and a number of rows.

    Attributes:
        drafter: Name of the drafter.
        growth: One of `GROWTHS`.
        rows: Rows of every step; 0 if the engine chooses.
    """

    drafter: str
    growth: str
    rows: int

    @property
    def name(self) -> str:
        """Name in a race."""
        return f"{self.drafter} {self.growth} {self.rows}"


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """Measured speed of an entry.

    Attributes:
        growth: One of `GROWTHS`.
        rows: Rows of every step; 0 if the engine chose.
        tau: Tokens per step.
        x_plain: Speed relative to plain decoding.
        promised_tau: Expected tokens per step of a synthetic drafter; else 0.
    """

    growth: str
    rows: int
    tau: float
    x_plain: float
    promised_tau: float = 0.0


@dataclass(frozen=True, slots=True)
class GrowthLine:
    """Measured speeds of one drafter.

    Attributes:
        drafter: Name of the drafter.
        points: Speeds of all its entries.
        over_best: Speed of the engine's choice relative to the best of the others, plain decoding
            included; 0 if the choice didn't take part.
        form: The engine's most frequent choice: chain, tree or none.
        why: Its reason, for people.
    """

    drafter: str
    points: tuple[GrowthPoint, ...]
    over_best: float = 0.0
    form: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class GrowthRace:
    """Measured speeds of all drafters.

    Attributes:
        model: Name of the target.
        lines: One for each drafter.
        plain_tokens_per_s: Speed of plain decoding.
        step_x: Time of a step by its rows, relative to one of one row.
        num_prompts: Prompts that fit the context.
    """

    model: str
    lines: tuple[GrowthLine, ...]
    plain_tokens_per_s: float
    step_x: Mapping[int, float]
    num_prompts: int


class GrowthRacer:
    """Lets drafters answer with all growths and row counts."""

    def __init__(
        self, target: Target, costs: StepCosts, growths: Sequence[str], rows: Sequence[int]
    ) -> None:
        """Prepare a race.

        Args:
            target: The loaded target.
            costs: Measured step costs of this computer.
            growths: Some of `GROWTHS`.
            rows: Row counts of chains and trees.
        """
        self._target, self._costs = target, costs
        self._growths, self._rows = growths, rows
        self._rates: Sequence[float] = ()

    def race(
        self,
        drafters: Sequence[DrafterSpec],
        prompts: Sequence[BenchPrompt],
        max_new_tokens: int,
        repeats: int,
        on_prompt: Callable[[int, int], None],
    ) -> GrowthRace:
        """Let drafters answer all prompts greedily; each entry is calibrated on its own.

        Args:
            drafters: The drafters.
            prompts: Prompts, of which the first turns are used.
            max_new_tokens: Length of the answers.
            repeats: Number of runs; the shortest time of each answer counts.
            on_prompt: Called with the number of prompts that are done, and of all.
        """
        questions = [BenchPrompt(p.prompt_id, p.category, p.turns[:1]) for p in prompts]
        entries = {spec.name: self._entries(spec.name) for spec in drafters}
        specs = {spec.name: spec for spec in drafters}
        plain = GenerateSettings(drafter=_PLAIN, max_new_tokens=max_new_tokens)
        modes = {_PLAIN: OwnMode(self._target, plain, self._row_policy())}
        for entry in (entry for each in entries.values() for entry in each):
            settings = GenerateSettings(
                drafter=entry.drafter,
                growth=entry.growth,
                tree_rows=entry.rows,
                max_new_tokens=max_new_tokens,
            )
            spec = specs[entry.drafter]
            modes[entry.name] = OwnMode(self._target, settings, self._row_policy(), spec)
        found = run_race(modes, questions, repeats, on_prompt)
        speeds = {name: _speed(found, name) for name in modes}
        length = self._costs.lengths[0]
        return GrowthRace(
            self._target.name,
            tuple(self._line(name, each, speeds, modes) for name, each in entries.items()),
            speeds[_PLAIN].tokens_per_s,
            {
                rows: self._costs.step_s(rows, length) / self._costs.plain_s(length)
                for rows in self._rows
            },
            len(questions) - found.num_skipped,
        )

    def race_synthetic(
        self,
        rates: Sequence[float],
        prompts: Sequence[BenchPrompt],
        max_new_tokens: int,
        repeats: int,
        on_prompt: Callable[[int, int], None],
    ) -> GrowthRace:
        """Race a synthetic drafter that is accepted at these rates at depth 1, 2, …; see `race`."""
        settings = GenerateSettings(drafter=_PLAIN, max_new_tokens=max_new_tokens)
        texts = {}
        for prompt in prompts:
            messages = [ChatMessage(Role.USER, prompt.turns[0])]
            with closing(Session(self._target)) as session:
                try:
                    done = generate(self._target, messages, settings, session=session)
                except RequestError as error:  # too long: the race skips it, too
                    log.info("skipped %s: %s", prompt.prompt_id, error.message)
                    continue
                token_ids = tuple(session.token_ids)
            count = done.num_prompt_tokens
            texts[token_ids[:count]] = token_ids[count:]
        self._rates = rates
        drafters = [synthetic_spec(rates, texts)]
        return self.race(drafters, prompts, max_new_tokens, repeats, on_prompt)

    def _row_policy(self) -> RowPolicy:
        """A row policy with the measured costs that has learned nothing."""
        return RowPolicy(self._target, self._costs)

    def _entries(self, drafter: str) -> list[GrowthEntry]:
        """Return all entries of a drafter; a tree of two rows is left out if chains race, too."""
        fixed = [growth for growth in self._growths if growth != AUTO_GROWTH]
        entries = [
            GrowthEntry(drafter, growth, rows)
            for growth in fixed
            for rows in self._rows
            if growth == CHAIN or CHAIN not in fixed or rows > 2
        ]
        return [
            *entries,
            *(GrowthEntry(drafter, AUTO_GROWTH, 0) for _ in {*self._growths} - {*fixed}),
        ]

    def _line(
        self,
        drafter: str,
        entries: Sequence[GrowthEntry],
        speeds: Mapping[str, Totals],
        modes: Mapping[str, OwnMode],
    ) -> GrowthLine:
        """Speeds of all entries of a drafter, and of the engine's choice among them."""
        plain = speeds[_PLAIN].tokens_per_s
        points = tuple(
            GrowthPoint(
                entry.growth,
                entry.rows,
                speeds[entry.name].mean_acceptance_length,
                speeds[entry.name].tokens_per_s / plain,
                self._expected(entry),
            )
            for entry in entries
        )
        if not points or points[-1].growth != AUTO_GROWTH:
            return GrowthLine(drafter, points)
        best = max([1.0, *(point.x_plain for point in points[:-1])])
        chosen = modes[entries[-1].name].sums.speed(drafter, plain, self._costs)
        return GrowthLine(drafter, points, points[-1].x_plain / best, chosen.growth, chosen.why)

    def _expected(self, entry: GrowthEntry) -> float:
        """Return the tokens per step that the synthetic acceptance rates imply; 0 for others."""
        if entry.drafter != SYNTHETIC or not entry.rows:
            return 0.0
        return expected_tau(self._rates, entry.growth, entry.rows)


def _speed(found: RaceResult, name: str) -> Totals:
    """Sums over all prompts, with the shortest time of each."""
    tokens = steps = 0
    seconds = 0.0
    for repeated in zip(*found.results[name], strict=True):  # of one prompt
        totals = [Totals.of([conversation]) for conversation in repeated]
        tokens += totals[-1].num_tokens  # after calibration
        steps += totals[-1].num_steps
        seconds += min(each.decode_s for each in totals)
    return Totals(steps, tokens, seconds)


def growth_json(race: GrowthRace) -> dict[str, Any]:
    """Return the fields of `--json`."""
    return {"growth": asdict(race)}


def growth_markdown(race: GrowthRace) -> str:
    """Format one Markdown table: tokens per step, and speed relative to plain decoding."""
    ways = list(dict.fromkeys((p.growth, p.rows) for line in race.lines for p in line.points))
    has_auto = any(line.form for line in race.lines)
    heads = ["drafter", *(f"{growth} {rows}" if rows else growth for growth, rows in ways)]
    heads += ["auto over best", "mostly"] if has_auto else []
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for line in race.lines:
        by_way = {(point.growth, point.rows): _cell(point) for point in line.points}
        cells = [line.drafter, *(by_way.get(way, "") for way in ways)]
        cells += [f"{line.over_best:.2f}", line.form] if has_auto else []
        lines.append(f"| {' | '.join(cells)} |")
    times = ", ".join(f"{rows}: {times:.2f}" for rows, times in race.step_x.items())
    lines += ["", "Tokens per step · times plain decoding, by the most rows of a step."]
    lines += [f"{line.drafter}: {line.why}" for line in race.lines if line.why]
    lines.append(
        f"{race.model}, prompts: {race.num_prompts}; plain decoding {race.plain_tokens_per_s:.1f} "
        f"tokens/s. A step takes, by rows, times one of one row: {times}."
    )
    return "\n".join(lines) + "\n"


def _cell(point: GrowthPoint) -> str:
    """Tokens per step and relative speed of a table cell, with the expected tokens if known."""
    expected = f" ({point.promised_tau:.2f})" if point.promised_tau else ""
    return f"{point.tau:.2f}{expected} · {point.x_plain:.2f}"
