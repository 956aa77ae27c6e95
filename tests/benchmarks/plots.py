"""Plots sweeps: trees of all sizes, and what typical acceptance gains and costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.errors import PromptFileError, RequestError
from medusa_core.system.extras import PLOTS_EXTRA
from tests.benchmarks.rows_sweep import RowsSweep
from tests.benchmarks.sweep import EpsilonSweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_picture(num: int) -> tuple[Figure, list[Axes]]:
    """Make an empty figure with the given number of diagrams.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    PLOTS_EXTRA.need()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * num, 3.2), layout="constrained")
    return figure, list(figure.subplots(1, num))


def save_picture(figure: Figure, path: Path) -> None:
    """Save a figure in the format of the file's suffix.

    Raises:
        RequestError: There is no such format.
        PromptFileError: The file can't be written.
    """
    try:
        figure.savefig(path)
    except ValueError as error:
        raise RequestError(f"{path.name} is no picture: {error}.", "Call it NAME.svg.") from error
    except OSError as error:
        raise PromptFileError(f"{path} can't be written: {error}.", "Name another file.") from error


def plot_rows(sweep: RowsSweep, path: Path) -> None:
    """Draw τ(n), the step's time and tokens per second over n, of sparse and dense trees.

    Raises:
        RequestError: matplotlib isn't installed, or can't draw such a file.
        PromptFileError: The file can't be written.
    """
    rows, dense_rows = [p.rows for p in sweep.points], [p.rows for p in sweep.dense]
    figure, (tokens, times, speeds) = new_picture(3)
    tokens.plot(rows, [p.mean_acceptance_length for p in sweep.points], "o-", label="measured")
    tokens.plot(rows, [p.expected for p in sweep.points], "--", label="by accuracies")
    tokens.plot(
        dense_rows, [p.mean_acceptance_length for p in sweep.dense], "s:", label="dense trees"
    )
    tokens.set_title("tokens per step τ(n)")
    tokens.legend()
    times.plot(rows, [p.step_s * 1e6 for p in sweep.points], "o-")
    times.set_title("time of a step (µs)")
    speeds.plot(rows, [p.tokens_per_s for p in sweep.points], "o-", label="measured")
    predicted = [p.expected / p.step_s for p in sweep.points]
    speeds.plot(rows, predicted, "--", label="τ(n) ÷ time")
    speeds.plot(dense_rows, [p.tokens_per_s for p in sweep.dense], "s:", label="dense trees")
    speeds.set_title("tokens per second")
    for axes in (tokens, times, speeds):
        axes.axvline(sweep.chosen_rows, color="grey", linewidth=1, label="chosen")
        axes.set_xlabel("rows n")
        axes.set_ylim(bottom=0)
    speeds.legend()
    save_picture(figure, path)


def plot_epsilon(sweep: EpsilonSweep, path: Path) -> None:
    """Draw tokens per step against agreement, and against the text's log-probability.

    Raises:
        RequestError: matplotlib isn't installed, or can't draw such a file.
        PromptFileError: The file can't be written.
    """
    figure, panels = new_picture(2)
    named = (
        ("agreement", "agreement with exact sampling"),
        (
            "mean_log_probability",
            "the target's mean log-probability",
        ),
    )
    for axes, (name, title) in zip(panels, named, strict=True):
        xs = [getattr(point, name) for point in sweep.points]
        ys = [point.mean_acceptance_length for point in sweep.points]
        axes.plot(xs, ys, "o-", label="typical")
        for x, y, point in zip(xs, ys, sweep.points, strict=True):
            axes.annotate(f"ε = {point.epsilon:g}", (x, y), fontsize=7)
        exact = sweep.exact
        axes.plot([getattr(exact, name)], [exact.mean_acceptance_length], "s", label="exact")
        axes.set_xlabel(title)
        axes.set_ylabel("tokens per step")
        axes.legend()
    save_picture(figure, path)
