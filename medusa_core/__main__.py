"""`python -m medusa_core`: generate, bench, train and eval from a terminal."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Any

from medusa_core.batch import cli as batch_cli
from medusa_core.bench import cli as bench_cli
from medusa_core.doctor import cli as doctor_cli
from medusa_core.errors import MedusaError
from medusa_core.generate.cli import add_generate_arguments, run_generate
from medusa_core.generate.serve_layers_cli import add_serve_layers_arguments, run_serve_layers
from medusa_core.heads import cli as heads_cli
from medusa_core.history import cli as history_cli
from medusa_core.hub import download_cli
from medusa_core.hub.library_cli import add_library_commands
from medusa_core.plan import cli as plan_cli
from medusa_core.training import cli as training_cli


def main(argv: Sequence[str] | None = None) -> int:
    """Parse arguments and run one command.

    Returns:
        0 on success, 1 if it failed with a message, 2 if the arguments are wrong, 130 if stopped.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING)
    if not args.verbose:
        for handler in logging.getLogger().handlers:
            handler.addFilter(_without_traceback)
    try:
        code: int = args.run(args)
    except MedusaError as error:
        logging.getLogger(__name__).info("failed", exc_info=True)
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone (as in `| head`); nobody is left to tell.
        sys.stderr.close()
        return 1
    return code


def _without_traceback(record: logging.LogRecord) -> bool:
    """What failed is told in two sentences; the rest is for `--verbose`."""
    return record.exc_info is None


class _Parser(argparse.ArgumentParser):
    """Takes options by their whole names alone: a part of one may mean another elsewhere."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(prog="medusa_core", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="log what is done")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    generate = commands.add_parser("generate", help="answer one prompt in the terminal")
    add_generate_arguments(generate)
    generate.set_defaults(run=run_generate)

    batch = commands.add_parser("batch", help="answer a file of prompts, many at a time")
    batch_cli.add_arguments(batch)
    batch.set_defaults(run=batch_cli.run)

    layers = commands.add_parser("serve-layers", help="let other machines use layers of a model")
    add_serve_layers_arguments(layers)
    layers.set_defaults(run=run_serve_layers)

    bench = commands.add_parser("bench", help="compare decoding modes and peers on prompts")
    bench_cli.add_arguments(bench)
    bench.set_defaults(run=bench_cli.run)

    heads = commands.add_parser("heads", help="look at Medusa heads, and convert them")
    heads_cli.add_arguments(heads)

    download = commands.add_parser("download", help="fetch a model and its heads from the Hub")
    download_cli.add_arguments(download)
    download.set_defaults(run=download_cli.run)

    add_library_commands(commands)

    history = commands.add_parser("history", help="export, import and check conversations")
    history_cli.add_arguments(history)

    plan = commands.add_parser("plan", help="does a model fit, and where does the memory go?")
    plan_cli.add_arguments(plan)
    plan.set_defaults(run=plan_cli.run)

    doctor = commands.add_parser("doctor", help="what works here, and what to do where it doesn't")
    doctor_cli.add_arguments(doctor)
    doctor.set_defaults(run=doctor_cli.run)

    train = commands.add_parser("train", help="train heads for a model, or the demo model itself")
    training_cli.add_train_arguments(train)

    evaluate = commands.add_parser("eval", help="measure heads, or the demo model")
    training_cli.add_eval_arguments(evaluate)
    return parser


if __name__ == "__main__":
    sys.exit(main())
