"""`python -m medusa_core`: generate, bench, train and eval from a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from medusa_core.cli.program import program, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit status; see `run`.
    """
    words = sys.argv[1:] if argv is None else argv
    return run(_parser(words), words)


def _generate(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.generate import (
        add_generate_arguments,
        run_generate,
    )

    add_generate_arguments(parser)
    parser.set_defaults(run=run_generate)


def _batch(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import batch as cli

    cli.add_arguments(parser)
    parser.set_defaults(run=cli.run)


def _serve(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.serve import add_serve_arguments, run_serve

    add_serve_arguments(parser)
    parser.set_defaults(run=run_serve)


def _serve_layers(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.serve_layers import (
        add_serve_layers_arguments,
        run_serve_layers,
    )

    add_serve_layers_arguments(parser)
    parser.set_defaults(run=run_serve_layers)


def _bench(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import bench as cli

    cli.add_arguments(parser)
    parser.set_defaults(run=cli.run)


def _heads(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import heads as cli

    cli.add_arguments(parser)


def _download(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import download as download_cli

    download_cli.add_arguments(parser)
    parser.set_defaults(run=download_cli.run)


def _list(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import library as library_cli

    library_cli.add_list_arguments(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import library as library_cli

    library_cli.add_verify_arguments(parser)


def _remove(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import library as library_cli

    library_cli.add_remove_arguments(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import library as library_cli

    library_cli.add_import_arguments(parser)


def _convert(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import library as library_cli

    library_cli.add_convert_arguments(parser)


def _history(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import history as cli

    cli.add_arguments(parser)


def _plan(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import plan as cli

    cli.add_arguments(parser)
    parser.set_defaults(run=cli.run)


def _doctor(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import doctor as cli

    cli.add_arguments(parser)
    parser.set_defaults(run=cli.run)


def _train(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import train as cli

    cli.add_train_arguments(parser)


def _eval(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import train as cli

    cli.add_eval_arguments(parser)


# By name: what it does, and what gives its parser the arguments and the function that runs it.
_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "generate": ("answer one prompt in the terminal", _generate),
    "batch": ("answer a file of prompts, many at a time", _batch),
    "serve": ("let other programs use a model by HTTP", _serve),
    "serve-layers": ("let other machines use layers of a model", _serve_layers),
    "bench": ("compare decoding modes and peers on prompts", _bench),
    "heads": ("look at Medusa heads, and convert them", _heads),
    "download": ("fetch a model and its heads from the Hub", _download),
    "list": ("models and heads on this computer", _list),
    "verify": ("compare a model's files with their hashes", _verify),
    "remove": ("remove a model from the cache", _remove),
    "import": ("list a model that lies in a folder", _import),
    "convert": ("turn pickled heads or weights into safetensors", _convert),
    "history": ("export, import and check conversations", _history),
    "plan": ("does a model fit, and where does the memory go?", _plan),
    "doctor": ("what works here, and what to do where it doesn't", _doctor),
    "train": ("train heads for a model, or make a phrase table", _train),
    "eval": ("measure heads", _eval),
}


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command line: only the command that stands in it is imported."""
    parser = program("medusa_core", __doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), "")
    for name, (does, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(name, help=does)
        if name == chosen:
            add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
