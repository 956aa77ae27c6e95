"""Plots tokens per step, step time and speed over the number of tree rows."""

from __future__ import annotations

from pathlib import Path

from medusa_core.bench.rows_sweep import RowsSweep
from medusa_core.errors import PromptFileError, RequestError


def plot_rows(sweep: RowsSweep, path: Path) -> None:
    """Draw τ(n), the step's time and tokens per second over n; the ending of the name says how.

    Raises:
        RequestError: matplotlib isn't installed, or can't draw such a file.
        PromptFileError: The file can't be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RequestError(
            "Plots need matplotlib.", "Install it: pip install -e '.[plots]'."
        ) from error
    rows = [point.rows for point in sweep.points]
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    tokens, times, speeds = figure.subplots(1, 3)
    tokens.plot(rows, [p.mean_acceptance_length for p in sweep.points], "o-", label="measured")
    tokens.plot(rows, [p.expected for p in sweep.points], "--", label="by accuracies")
    tokens.set_title("tokens per step τ(n)")
    tokens.legend()
    times.plot(rows, [p.step_s * 1e6 for p in sweep.points], "o-")
    times.set_title("time of a step (µs)")
    speeds.plot(rows, [p.tokens_per_s for p in sweep.points], "o-", label="measured")
    predicted = [p.expected / p.step_s for p in sweep.points]
    speeds.plot(rows, predicted, "--", label="τ(n) ÷ time")
    speeds.set_title("tokens per second")
    for axes in (tokens, times, speeds):
        axes.axvline(sweep.chosen_rows, color="grey", linewidth=1, label="chosen")
        axes.set_xlabel("rows n")
        axes.set_ylim(bottom=0)
    speeds.legend()
    try:
        figure.savefig(path)
    except ValueError as error:
        raise RequestError(f"{path.name} is no picture: {error}.", "Call it NAME.svg.") from error
    except OSError as error:
        raise PromptFileError(f"{path} can't be written: {error}.", "Name another file.") from error
