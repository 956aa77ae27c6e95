"""Entry point of `medusa` and `python -m medusa_core`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from medusa_core.cli.installed import PACKAGED, is_packaged, run_by_package
from medusa_core.cli.program import CommandEntry, print_any_text, program_of_commands, run
from medusa_core.system.torch_libraries import begin_to_load_torch

_LOADING = ("run", "generate", "batch", "serve", "bench")  # commands that load a model
_DOES = "Language models on this computer, made fast by Medusa decoding."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit status of `run`.
    """
    print_any_text()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if words[:1] and words[0] in PACKAGED and ("--help" not in words or is_packaged()):
        return run_by_package(words[0], words[1:])
    chosen = next((word for word in words if not word.startswith("-")), "")
    if chosen in _LOADING and not {"-h", "--help", "--endpoint"} & set(words):
        begin_to_load_torch()
    parser = program_of_commands("medusa", _DOES, COMMANDS, (chosen,))
    if not words:
        parser.print_help()
        return 2
    return run(parser, words)


def _of(module: str, name: str = "") -> Callable[[argparse.ArgumentParser], None]:
    """Return what adds a command's arguments: its module is imported for that command alone.

    Args:
        module: Module in `medusa_core.cli`.
        name: Name of the command in a module of several commands; empty for others.
    """

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Import the command's module, and add its arguments."""
        cli = import_module(f"medusa_core.cli.{module}")
        (cli.COMMANDS[name] if name else cli.add_arguments)(parser)

    return add_arguments


def _of_package(name: str) -> Callable[[argparse.ArgumentParser], None]:
    """Return the arguments of a command that the installer's package runs."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Let the installer's package run the command."""
        parser.set_defaults(run=lambda _: run_by_package(name, ()))

    return add_arguments


def _completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`, which needs the list of all commands."""
    from medusa_core.cli.completion import add_completion_arguments

    add_completion_arguments(parser, COMMANDS)


COMMANDS = {
    "run": CommandEntry("Chat", "chat with a model in the terminal", _of("run")),
    "generate": CommandEntry("", "answer one prompt, with all settings", _of("generate")),
    "batch": CommandEntry("", "answer a file of prompts, many at a time", _of("batch")),
    "history": CommandEntry("", "export and import conversations; or settings", _of("history")),
    "settings": CommandEntry("", "export and import settings and presets", _of("settings"), False),
    "list": CommandEntry("Models", "models and heads on this computer", _of("library", "list")),
    "pull": CommandEntry("", "fetch a model and its heads from the Hub", _of("pull")),
    "show": CommandEntry("", "describe a model from its files", _of("show")),
    "rm": CommandEntry("", "remove a model from the cache", _of("library", "rm")),
    "verify": CommandEntry(
        "", "compare a model's files with their hashes", _of("library", "verify")
    ),
    "import": CommandEntry("", "list a model that is in a folder", _of("library", "import")),
    "convert": CommandEntry(
        "", "turn pickled heads or weights into safetensors", _of("library", "convert")
    ),
    "plan": CommandEntry("", "does a model fit, and where does the memory go?", _of("plan")),
    "serve": CommandEntry("Run", "let other programs use a model by HTTP", _of("serve")),
    "ps": CommandEntry("", "which models are loaded, and by whom", _of("ps")),
    "serve-layers": CommandEntry(
        "", "let other machines use layers of a model", _of("serve_layers")
    ),
    "doctor": CommandEntry("", "check the installation, and say how to repair it", _of("doctor")),
    "update": CommandEntry(
        "", "install a newer version; or repair it, or uninstall it", _of_package("update")
    ),
    "repair": CommandEntry("", "reinstall what a package installed", _of_package("repair"), False),
    "uninstall": CommandEntry(
        "", "remove the program of this user", _of_package("uninstall"), False
    ),
    "completion": CommandEntry("", "let a shell complete commands and names", _completion),
    "bench": CommandEntry("Speed", "compare decoding modes and peers on prompts", _of("bench")),
    "train": CommandEntry(
        "", "train heads or a phrase table; eval measures heads", _of("train", "train")
    ),
    "eval": CommandEntry("", "measure heads", _of("train", "eval"), False),
    "heads": CommandEntry(
        "", "look at heads and other drafters, convert Medusa heads", _of("heads")
    ),
}


if __name__ == "__main__":
    sys.exit(main())
