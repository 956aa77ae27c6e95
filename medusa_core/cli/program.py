"""Argument parser and runner of a program with commands."""

from __future__ import annotations

import argparse
import difflib
import io
import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from medusa_core import __version__
from medusa_core.errors import MedusaError
from medusa_core.system.sandbox.command import JSON_ERRORS, error_line
from medusa_core.system.torch_libraries import imports_uncollected
from medusa_core.system.user_folders import close_folders, prepare_home

_EXIT_STATUSES = "Exit status: 0 done, 1 failed, 2 wrong arguments, 3 batch paused, 130 stopped."
_METAVARS: dict[object, str] = {int: "N", float: "X", Path: "PATH"}
_FAILED, _STOPPED = 1, 130
_WIDEST, _NAME_COLUMN = 100, 24


class CommandEntry(NamedTuple):
    """A command of a program: its description and arguments.

    Attributes:
        group: Heading before the command in help; empty for none.
        does: Description in a few words.
        add_arguments: Adds the arguments to its parser, and sets its function as `run`; may import
            heavy modules.
        is_listed: Whether help has a line for it.
    """

    group: str
    does: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    is_listed: bool = True


def program(name: str, does: str | None) -> argparse.ArgumentParser:
    """Return the parser of a program, whose commands set `run`, a function of the arguments."""
    parser: argparse.ArgumentParser = _Parser(prog=name, description=does)
    _add_verbose(parser)
    return parser


def program_of_commands(
    name: str, does: str, commands: dict[str, CommandEntry], chosen: Sequence[str]
) -> argparse.ArgumentParser:
    """Return the parser of a program with commands.

    Args:
        name: Name of the program.
        does: Description in a few words.
        commands: Commands by name.
        chosen: Commands that get their arguments; modules of the others aren't imported.
    """
    parser = _CommandParser(name, does, commands)
    _add_verbose(parser)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for command_name, entry in commands.items():
        command = subparsers.add_parser(command_name, help=entry.does, description=_sentence(entry))
        if command_name in chosen:
            entry.add_arguments(command)
    return parser


def print_any_text() -> None:
    """Print `?` for characters that the output's encoding lacks.

    Pipes on Windows, and terminals of a POSIX locale, aren't UTF-8.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Parse arguments and run one command.

    Args:
        parser: Parser of `program` or `program_of_commands`.
        words: Words after the program's name.

    Returns:
        0 on success, 1 for a failure with a message, 2 for wrong arguments, 130 if interrupted.
    """
    args = parser.parse_args(words)
    if not logging.getLogger().handlers:  # else the calling program has configured logging
        logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING)
        if not args.verbose:
            logging.getLogger().handlers[0].addFilter(_without_traceback)
    try:
        prepare_home()
        close_folders()
        with imports_uncollected():
            for check in args.checks:
                check(args)
        code: int = args.run(args)
        sys.stdout.flush()
    except MedusaError as error:
        logging.getLogger(__name__).info("failed", exc_info=True)
        _print_error(error)
        return _FAILED
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return _STOPPED
    except BrokenPipeError:
        # The reader has exited (as in `| head`); Python must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return code


def _print_error(error: MedusaError) -> None:
    """Print an error for people, or for the program that has started this command."""
    if os.environ.get(JSON_ERRORS):
        print(error_line(error), file=sys.stderr)
        return
    print(f"error: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {error.hint}", file=sys.stderr)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Drop records with tracebacks, which only `--verbose` shows."""
    return record.exc_info is None


def log_to_stderr(*packages: str) -> None:
    """Log the progress of packages to stderr, so that stdout has the result alone."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    # Whatever the level of the rest: a run of an hour must show its progress.
    for package in packages:
        logging.getLogger(package).setLevel(logging.INFO)


def check_first(
    parser: argparse.ArgumentParser, check: Callable[[argparse.Namespace], object]
) -> None:
    """Add a check of the arguments that runs before the command.

    Args:
        parser: Parser of the command.
        check: Raises a `MedusaError` for invalid arguments.
    """
    parser.set_defaults(checks=(*(parser.get_default("checks") or ()), check))


def _add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add `--verbose` and an empty list of checks."""
    parser.set_defaults(checks=())
    parser.add_argument("--verbose", action="store_true", help="log what is done")


def _is_option(word: str) -> bool:
    """Whether a word is an option."""
    return word.startswith("-")


def _sentence(entry: CommandEntry) -> str:
    """Return a command's description as a sentence."""
    return f"{entry.does[0].upper()}{entry.does[1:]}{'' if entry.does.endswith('?') else '.'}"


def argument_group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """Return the argument group with this title; creates it if it is missing."""
    found = (group for group in parser._action_groups if group.title == title)
    return next(found, None) or parser.add_argument_group(title)


class _Formatter(argparse.HelpFormatter):
    """Formats help in two columns, as wide as the terminal."""

    def __init__(self, prog: str) -> None:
        columns = min(shutil.get_terminal_size().columns, _WIDEST)
        super().__init__(prog, max_help_position=_NAME_COLUMN, width=columns - 2)

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        """Return a short name for a value, since the option's name describes it."""
        return _METAVARS.get(action.type, "NAME")

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Show an option's value after its last name only."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _Parser(argparse.ArgumentParser):
    """Parser without abbreviations, and with errors of two lines."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= {"allow_abbrev": False, "formatter_class": _Formatter}
        super().__init__(*args, **kwargs)
        self._typed: list[str] = []

    def format_help(self) -> str:
        """Return help with one line of usage, whatever the number of options."""
        written, self.usage = self.usage, self._short_usage() if self.usage is None else self.usage
        try:
            return super().format_help()
        finally:
            self.usage = written

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words, accepting positional ones after options, too."""
        self._typed = list(sys.argv[1:] if args is None else args)
        found, left = super().parse_known_args(args, namespace)
        positionals = (action for action in reversed(self._actions) if not action.option_strings)
        last = next(positionals, None)
        if last is not None and last.nargs == "*" and not any(map(_is_option, left)):
            # argparse fills all positionals from the words before the first option.
            setattr(found, last.dest, [*getattr(found, last.dest), *left])
            left = []
        if left:  # here, where the options of this command are known
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """Exit with an error and a hint; a misspelt option comes before a missing one."""
        known = self._option_string_actions
        words = (word.partition("=")[0] for word in self._typed if word.startswith("--"))
        wrong = next((word for word in words if word != "--" and word not in known), "")
        near = difflib.get_close_matches(wrong, known, 1)
        problem = f"there is no option {wrong}." if wrong else message
        hint = f"Did you mean {near[0]}?" if near else f"See {self.prog} --help."
        self.exit(2, f"error: {problem}\n  {hint}\n")

    def _short_usage(self) -> str:
        """Return the usage with required arguments only."""
        formatter = self._get_formatter()
        positionals = [action for action in self._actions if not action.option_strings]
        needed = [action for action in self._actions if action.option_strings and action.required]
        words = [self.prog]
        for action in needed:
            value = formatter._get_default_metavar_for_optional(action)
            words += [action.option_strings[-1], formatter._format_args(action, value)]
        words += [formatter._format_args(action, action.dest.upper()) for action in positionals]
        return " ".join([*words, "[OPTIONS]"]).replace("%", "%%")


# Names of these commands in other programs.
_OTHER_NAMES = {
    "chat": "run", "ask": "run", "complete": "generate", "server": "serve", "start": "serve",
    "download": "pull", "get": "pull", "install": "pull", "ls": "list", "models": "list",
    "delete": "rm", "remove": "rm", "info": "show", "benchmark": "bench", "status": "ps",
}  # fmt: skip


class _CommandParser(_Parser):
    """Parser of a program, whose help is a table of its commands."""

    def __init__(self, name: str, does: str, commands: dict[str, CommandEntry]) -> None:
        super().__init__(prog=name, description=does)
        self._commands = commands

    def error(self, message: str) -> NoReturn:
        """Exit with an error and a hint if the command is unknown."""
        named = next((word for word in self._typed if not word.startswith("-")), "")
        if not named or named in self._commands:
            super().error(message)
        meant = _OTHER_NAMES.get(named, "")
        near = [meant] if meant else difflib.get_close_matches(named, self._commands, 1)
        hint = f"Did you mean {near[0]}?" if near else f"See {self.prog} --help."
        self.exit(2, f"error: there is no command {named}.\n  {hint}\n")

    def format_help(self) -> str:
        """Return the table of commands."""
        lines = [f"usage: {self.prog} COMMAND [OPTIONS]     {self.prog} COMMAND --help"]
        width = max(map(len, self._commands)) + 2
        lines += [
            f"  {entry.group:<8}{name:<{width}}{entry.does}"
            for name, entry in self._commands.items()
            if entry.is_listed
        ]
        return "\n".join([*lines, _EXIT_STATUSES]) + "\n"
