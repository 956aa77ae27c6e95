"""The demo model's recipe: train Llama-Pebble, count its phrases, measure it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from medusa_core.cli.program import log_to_stderr, program, run

SIZES = ("nano", "small", "medium")
_PROGRESS = ("recipe", "medusa_core.training")  # whose progress is logged


def main(words: Sequence[str]) -> int:
    """Run one command; torch is imported only once it runs.

    Args:
        words: What stands behind the program's name.

    Returns:
        The exit status; see `medusa_core.cli.program.run`.
    """
    parser = program("recipe", __doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, does, add_arguments, run_it in (
        ("train", "train the model and its heads", _add_train_arguments, run_train),
        ("phrases", "count the phrases of a model", _add_phrases_arguments, run_phrases),
        ("eval", "measure the gates of the model", _add_eval_arguments, run_eval),
    ):
        command = commands.add_parser(name, help=does)
        add_arguments(command)
        command.set_defaults(run=run_it)
    return run(parser, words)


def _add_train_arguments(parser: argparse.ArgumentParser) -> None:
    _add_data_arguments(parser)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    parser.add_argument("--minutes", type=float, help="stop after about this long, to be resumed")
    parser.add_argument(
        "--within", type=float, metavar="MINUTES", help="do as much of the recipe as fits this time"
    )
    parser.add_argument(
        "--compile", action="store_true", help="a tenth faster; needs a C++ compiler"
    )
    parser.add_argument("--pretrain-steps", type=int, help="other than the recipe's")
    parser.add_argument("--tune-steps", type=int, help="other than the recipe's")
    parser.add_argument(
        "--plain-heads", action="store_true", help="Medusa's own, which other programs run, too"
    )


def _add_phrases_arguments(parser: argparse.ArgumentParser) -> None:
    _add_data_arguments(parser)
    parser.add_argument("--model", type=Path, help="folder of the model (default: the shipped one)")
    parser.add_argument("--heads", type=Path, help="folder of its Medusa heads, for speed alone")
    parser.add_argument("--answers", type=int, help="how many; other than the recipe's")


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the training rows")
    parser.add_argument("--out", type=Path, required=True, help="folder for what is made")
    parser.add_argument("--size", choices=SIZES, default="small")


def _add_eval_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, help="folder of the model (default: the shipped one)")
    parser.add_argument("--rows", type=Path, help="split.tar.xz or a folder, for bits per byte")
    parser.add_argument(
        "--prompts", type=Path, help="in-domain prompts (default: the shipped ones)"
    )
    parser.add_argument(
        "--formats", default="", help="instead: bits per byte by weight format, commas between"
    )
    parser.add_argument(
        "--heads", type=Path, help="folder of Medusa heads: whether their probabilities hold, too"
    )
    parser.add_argument(
        "--adapter", default="", help="with --formats: folder of a LoRA that changes the model"
    )
    parser.add_argument(
        "--answers", type=Path, help="instead: write answers to the shipped samples, as Markdown"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_train(args: argparse.Namespace) -> int:
    """Run the recipe; 0 when it came to its end, 3 when it stopped to be resumed."""
    from recipe import command

    log_to_stderr(*_PROGRESS)
    finished = command.train(args)
    print("finished" if finished else "stopped; run again with --resume")
    return 0 if finished else 3


def run_phrases(args: argparse.Namespace) -> int:
    """Count what a model often says in answers to rows like the recipe's."""
    from recipe import command

    log_to_stderr(*_PROGRESS)
    command.write_phrase_table(args)
    return 0


def run_eval(args: argparse.Namespace) -> int:
    """Measure the gates and print them."""
    from recipe import command

    log_to_stderr(*_PROGRESS)
    if args.answers is not None and not args.formats:
        command.write_answers(args)
        return 0
    found = command.measure_formats(args) if args.formats else command.measure(args)
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, value in found.items():
        print(f"{name:<8}{value:.4f} bits per byte" if args.formats else f"{name}: {value}")
    return 0
