"""A program of commands: options by their whole names, errors in two lines, exit statuses."""

from __future__ import annotations

import argparse
import difflib
import logging
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from medusa_core.errors import MedusaError


def program(name: str, does: str | None) -> argparse.ArgumentParser:
    """The parser of a program; each of its commands sets `run`, a function of the arguments."""
    parser: argparse.ArgumentParser = _Parser(prog=name, description=does)
    parser.add_argument("--verbose", action="store_true", help="log what is done")
    return parser


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Parse arguments and run one command.

    Args:
        parser: Of `program`.
        words: What stands behind the program's name.

    Returns:
        0 on success, 1 if it failed with a message, 2 if the arguments are wrong, 130 if stopped.
    """
    args = parser.parse_args(words)
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


def log_to_stderr(*packages: str) -> None:
    """Progress lines of these packages on stderr, so that stdout holds the result alone."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    # whatever the command line chose for the rest: a run of an hour must say where it is
    for package in packages:
        logging.getLogger(package).setLevel(logging.INFO)


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
