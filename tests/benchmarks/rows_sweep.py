"""Compares the tree size that the engine chooses with all other sizes, and with dense trees."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from medusa_core.bench.contestant import Contestant, OwnMode
from medusa_core.bench.race import RaceConversation, Totals, run_race
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.search import (
    expected_length,
    grow,
)
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.medusa import SPEC as MEDUSA
from medusa_core.speculation.drafters.medusa import (
    MedusaDrafter,
    heads_and_trees,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.system.prompts import BenchPrompt
from tests.benchmarks.dense_trees import (
    Widths,
    best_dense,
    dense_paths,
)

ROWS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
CHOSEN = "chosen"
_NUM_AGAIN = 3  # of the best: the first of a noisy race may owe it to luck


@dataclass(frozen=True, slots=True)
class RowsPoint:
    """Measurements of trees of one size.

    Attributes:
        rows: Rows, root included.
        expected: Tokens per step that the heads' accuracies promise.
        mean_acceptance_length: Tokens per step that came.
        tokens_per_s: Of decoding alone.
        step_s: Seconds of a step, as calibrated.
    """

    rows: int
    expected: float
    mean_acceptance_length: float
    tokens_per_s: float
    step_s: float


@dataclass(frozen=True, slots=True)
class DensePoint:
    """Measurements of the best dense tree of at most a number of rows.

    Attributes:
        widths: Children of each node, by depth.
        rows: Its rows, root included.
        expected: As of `RowsPoint`.
        mean_acceptance_length: As of `RowsPoint`.
        tokens_per_s: As of `RowsPoint`.
        step_s: As of `RowsPoint`.
    """

    widths: tuple[int, ...]
    rows: int
    expected: float
    mean_acceptance_length: float
    tokens_per_s: float
    step_s: float


@dataclass(frozen=True, slots=True)
class RowsSweep:
    """Measurements of all tree sizes, and of the engine's choice beside the best of them.

    Attributes:
        points: One for each size, of the sparse trees that are worth most.
        dense: Dense trees, the smallest first.
        again: Tokens per second of the best sizes and of the choice, asked again in turns; medians.
        chosen_rows: Rows that the choice took most often.
        ratio: The choice over the best of `again`, median of the repeats.
    """

    points: tuple[RowsPoint, ...]
    dense: tuple[DensePoint, ...]
    again: Mapping[str, float]
    chosen_rows: int
    ratio: float


def sweep_rows(
    target: Target,
    prompts: Sequence[BenchPrompt],
    settings: GenerateSettings,
    costs: StepCosts,
    repeats: int,
    on_prompt: Callable[[int, int], None],
) -> RowsSweep:
    """Answer all prompts with trees of every size, then with the best and the chosen one.

    Args:
        target: A loaded target with heads.
        prompts: What to ask.
        settings: All but the tree.
        costs: What steps cost here.
        repeats: How often to ask the best again.
        on_prompt: Called with how many prompts of how many are done.
    """

    def contestant(rows: int) -> Contestant:
        return OwnMode(target, replace(settings, tree_rows=rows), RowPolicy(target, costs))

    trees = _dense_trees(target)
    sparse = {str(rows): contestant(rows) for rows in ROWS}
    dense = {
        str(widths): _dense_mode(target, widths, settings, RowPolicy(target, costs))
        for widths in trees
    }
    race = run_race({**sparse, **dense}, prompts, 1, on_prompt)
    dense_points = tuple(
        _dense_point(target, costs, widths, race.results[str(widths)][0]) for widths in trees
    )
    points = tuple(_point(target, costs, rows, race.results[str(rows)][0]) for rows in ROWS)
    best = sorted(points, key=lambda point: -point.tokens_per_s)[:_NUM_AGAIN]
    finalists = {str(point.rows): contestant(point.rows) for point in best}
    finalists[CHOSEN] = contestant(0)
    final = run_race(finalists, prompts, repeats, on_prompt)
    speeds = {
        name: [Totals.of(found).tokens_per_s for found in final.results[name]] for name in finalists
    }
    again = {name: statistics.median(found) for name, found in speeds.items()}
    winner = max((name for name in again if name != CHOSEN), key=lambda name: again[name])
    ratios = [a / b for a, b in zip(speeds[CHOSEN], speeds[winner], strict=True)]
    row_policy = RowPolicy(target, costs)
    return RowsSweep(
        points,
        dense_points,
        again,
        row_policy.rows(settings, costs.lengths[0]),
        statistics.median(ratios),
    )


def rows_table(sweep: RowsSweep) -> str:
    """The figures for people."""
    lines = [" rows  expected     tau  tokens/s   step µs"]
    lines += [
        f"{p.rows:5}{p.expected:10.2f}{p.mean_acceptance_length:8.2f}{p.tokens_per_s:10.0f}"
        f"{p.step_s * 1e6:10.0f}"
        for p in sweep.points
    ]
    lines.append(" rows  expected     tau  tokens/s   step µs  dense tree")
    lines += [
        f"{p.rows:5}{p.expected:10.2f}{p.mean_acceptance_length:8.2f}{p.tokens_per_s:10.0f}"
        f"{p.step_s * 1e6:10.0f}  {' × '.join(map(str, p.widths))}"
        for p in sweep.dense
    ]
    again = ", ".join(f"{name} {speed:,.0f}" for name, speed in sweep.again.items())
    lines.append(f"Again, in turns (tokens/s): {again}.")
    lines.append(
        f"The engine's choice ({sweep.chosen_rows} rows before it has learned) over the best: "
        f"{sweep.ratio:.3f}"
    )
    return "\n".join(lines)


def _point(
    target: Target, costs: StepCosts, rows: int, conversations: Sequence[RaceConversation]
) -> RowsPoint:
    totals = Totals.of(conversations)
    accuracies = () if target.trees is None else target.trees.head_accuracies
    paths = [path for path, _ in grow(accuracies, rows - 1)]
    depth = max((len(path) for path in paths), default=0)
    return RowsPoint(
        rows=rows,
        expected=expected_length(paths, accuracies),
        mean_acceptance_length=totals.mean_acceptance_length,
        tokens_per_s=totals.tokens_per_s,
        step_s=costs.tree_s(rows, depth, costs.lengths[0], costs.source_s(("medusa",))),
    )


def _dense_trees(target: Target) -> list[Widths]:
    """The best dense trees of every size; the same one once."""
    heads, trees = heads_and_trees(target)
    accuracies = [row[: heads.num_columns] for row in trees.head_accuracies[: heads.num_heads]]
    found = dict.fromkeys(best_dense(accuracies, rows - 1) for rows in ROWS)
    return sorted(found, key=lambda widths: len(dense_paths(widths)))


def _dense_mode(
    target: Target, widths: Widths, settings: GenerateSettings, row_policy: RowPolicy
) -> Contestant:
    heads, trees = heads_and_trees(target)
    shape = TreeShape.from_paths(dense_paths(widths))

    def build(_: Target, __: RowBudget) -> MedusaDrafter:
        return MedusaDrafter(heads, shape, trees.expected_length(shape) - 1)

    spec = DrafterSpec(MEDUSA.choice, MEDUSA.serves, build, MEDUSA.preference)
    return OwnMode(target, replace(settings, tree_rows=shape.num_nodes), row_policy, spec)


def _dense_point(
    target: Target, costs: StepCosts, widths: Widths, conversations: Sequence[RaceConversation]
) -> DensePoint:
    totals = Totals.of(conversations)
    accuracies = () if target.trees is None else target.trees.head_accuracies
    paths = dense_paths(widths)
    rows, source_s = len(paths) + 1, costs.source_s(("medusa",))
    return DensePoint(
        widths=widths,
        rows=rows,
        expected=expected_length(paths, accuracies),
        mean_acceptance_length=totals.mean_acceptance_length,
        tokens_per_s=totals.tokens_per_s,
        step_s=costs.tree_s(rows, len(widths), costs.lengths[0], source_s),
    )
