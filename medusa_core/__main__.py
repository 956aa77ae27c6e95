"""`python -m medusa_core`: generate, bench, train and eval from a terminal."""

from __future__ import annotations

import argparse
import difflib
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from medusa_core.errors import MedusaError


def main(argv: Sequence[str] | None = None) -> int:
    """Parse arguments and run one command.

    Returns:
        0 on success, 1 if it failed with a message, 2 if the arguments are wrong, 130 if stopped.
    """
    words = sys.argv[1:] if argv is None else argv
    args = _parser(words).parse_args(words)
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
    """Takes options by their whole names alone, and says in two lines what is wrong with them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})
        self._typed: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._typed = list(sys.argv[1:] if args is None else args)
        found, left = super().parse_known_args(args, namespace)
        if left:  # said here, where the options of this command are known
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """End with what is wrong, and what was meant; a wrong name counts before a missing one."""
        known = self._option_string_actions
        words = (word.partition("=")[0] for word in self._typed if word.startswith("--"))
        wrong = next((word for word in words if word != "--" and word not in known), "")
        near = difflib.get_close_matches(wrong, known, 1)
        problem = f"there is no option {wrong}." if wrong else message
        hint = f"Did you mean {near[0]}?" if near else f"See {self.prog} --help."
        self.exit(2, f"error: {problem}\n  {hint}\n")


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
    "train": ("train heads for a model, or the demo model itself", _train),
    "eval": ("measure heads, or the demo model", _eval),
}


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command line: only the command that stands in it is imported."""
    parser: argparse.ArgumentParser = _Parser(prog="medusa_core", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="log what is done")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), "")
    for name, (does, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(name, help=does)
        if name == chosen:
            add_arguments(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
