"""`medusa batch`: answer a file of prompts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.cli.arguments import add_drafter_argument, add_rule_arguments
from medusa_core.cli.load_arguments import add_model_arguments
from medusa_core.engine.batch.answers_file import AnswersFile
from medusa_core.engine.batch.lines import read_lines
from medusa_core.errors import RequestError
from medusa_core.loading.policy.rules import MAX_SEQUENCES
from medusa_core.messages import GenerateSettings
from medusa_core.system.jobs.batch.progress import (
    BatchMeter,
    BatchProgress,
    write_progress,
)
from medusa_core.system.sandbox.stopping import (
    stop_with_input,
    stopped_by_signals,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medusa_core.engine.batch.lines import BatchLine
    from medusa_core.engine.batch.run import ShouldPause

PAUSED = 3  # exit status; the same command resumes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `batch`."""
    parser.set_defaults(run=run)
    parser.add_argument(
        "--prompts",
        type=Path,
        required=True,
        help='JSON lines: {"id": ..., "prompt": "..."} or {"id": ..., "messages": [...]}',
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="file of answers, one JSON object a line; answers in it are kept",
    )
    parser.add_argument(
        "--max-new-tokens",
        type=int,
        default=GenerateSettings().max_new_tokens,
        help="longest answer; 0: what the context leaves",
    )
    parser.add_argument("--stop", action="append", default=[], help="end before this string")
    parser.add_argument(
        "--together",
        type=int,
        default=0,
        metavar="N",
        help="answers decoded at once (default: up to 32, as memory allows)",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="JSON file that places weights, cache and activations (default: if not all fits, the "
        "best that plan --throughput finds)",
    )
    parser.add_argument("--progress", type=Path, help="write the progress to this file")
    parser.add_argument(
        "--watched", action="store_true", help="pause when standard input ends, for other programs"
    )
    add_model_arguments(parser)
    add_drafter_argument(parser)
    add_rule_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Answer the remaining prompts; returns 0 at the end, 3 if it was paused."""
    if not 0 <= args.together <= MAX_SEQUENCES:
        raise RequestError(
            f"{args.together} answers can't be written at once.", f"Choose 1 to {MAX_SEQUENCES}."
        )
    if args.together and args.policy is not None:
        raise RequestError(
            "A policy says how many answers are written at once.", "Leave out --together."
        )
    lines = read_lines(args.prompts)
    with stopped_by_signals() as stopped, AnswersFile(args.out) as file:
        if args.watched:
            stop_with_input(stopped)
        left = [line for line in lines if str(line.line_id) not in file.done]
        meter = BatchMeter(len(lines), len(lines) - len(left), file.num_failed, args.progress)
        meter.report("loading", at_once=True)
        finished = not left or _answer(args, left, file, meter, stopped.is_set)
        last = meter.progress("done" if finished else "paused")
        if args.progress is not None:
            write_progress(args.progress, last)
    _show_end(args, last)
    return 0 if finished else PAUSED


def _answer(
    args: argparse.Namespace,
    lines: Sequence[BatchLine],
    file: AnswersFile,
    meter: BatchMeter,
    stop: ShouldPause,
) -> bool:
    """Load the model and answer all lines; return whether it wasn't paused."""
    from medusa_core.cli.batch_policy import closing_text, rates_now
    from medusa_core.cli.batch_target import (
        load_for_batch,
        settings_for,
    )
    from medusa_core.cli.load_arguments import open_row_policy
    from medusa_core.engine.batch.run import BatchRun
    from medusa_core.engine.batch.sparse_effect import sparse_effect
    from medusa_core.speculation.tuning.row_policy import RowPolicy

    loaded = load_for_batch(args, lines)
    target, chosen = loaded.target, loaded.chosen
    settings = settings_for(args, loaded)

    def show(progress: BatchProgress) -> None:
        """Update the measured rates and show the progress."""
        if chosen is not None:  # for the next report
            meter.set_parts(rates_now(chosen, target.runner.traffic.since(before)))
        _show(progress)

    run = BatchRun(
        target=target,
        settings=settings,
        file=file,
        meter=meter,
        # Step costs choose the trees; plain decoding doesn't need them.
        row_policy=RowPolicy(target)
        if settings.drafter == "none"
        else open_row_policy(args, target),
        max_batch=loaded.together,
        on_progress=show,
        stop=stop,
    )
    if chosen is not None:
        policy, forecast = chosen.found
        meter.set_policy(policy, forecast.tokens_per_s, forecast.sizes)
    meter.begin()
    before = target.runner.traffic
    finished = run.answer(lines)
    if chosen is not None:
        traffic = target.runner.traffic.since(before)
        meter.set_parts(rates_now(chosen, traffic))
        print(closing_text(chosen, traffic, meter.mean_tokens_per_s))
    effect = sparse_effect(target, run.answered_prompts) if finished else None
    if effect is not None:
        print(effect.text)
    return finished


def _show(progress: BatchProgress) -> None:
    """Show the progress on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r{progress_line(progress)}\x1b[K", end="", file=sys.stderr, flush=True)


def _show_end(args: argparse.Namespace, last: BatchProgress) -> None:
    """Print how many lines are done and where."""
    if sys.stderr.isatty():
        print(file=sys.stderr)
    failed = f", {last.num_failed} with an error" if last.num_failed else ""
    done = f"{last.num_done} of {last.num_lines} lines done{failed}: {args.out}"
    print(done if last.stage == "done" else f"{done}\npaused; the same command goes on")


def progress_line(progress: BatchProgress) -> str:
    """Format the progress."""
    text = f"{progress.num_done} of {progress.num_lines} · {progress.tokens_per_s:.0f} tokens/s"
    if progress.seconds_left is None:
        return text
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{text} · {hours}:{minutes:02}:{seconds:02} left"
