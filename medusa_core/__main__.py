"""Entry point of `medusa` and `python -m medusa_core`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from medusa_core.cli.installed import PACKAGED, is_packaged, run_by_package
from medusa_core.cli.program import CommandEntry, print_any_text, program_of_commands, run

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
    parser = program_of_commands("medusa", _DOES, COMMANDS, (chosen,))
    if not words:
        parser.print_help()
        return 2
    return run(parser, words)


def _run(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.run import add_run_arguments, run_chat

    add_run_arguments(parser)
    parser.set_defaults(run=run_chat)


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


def _pull(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import pull as cli

    cli.add_arguments(parser)
    parser.set_defaults(run=cli.run)


def _of_library(name: str) -> Callable[[argparse.ArgumentParser], None]:
    """Return the arguments of a command of the model library."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        from medusa_core.cli import library as cli

        cli.COMMANDS[name](parser)

    return add_arguments


def _ps(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.ps import add_ps_arguments, run_ps

    add_ps_arguments(parser)
    parser.set_defaults(run=run_ps)


def _show(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.show import add_show_arguments, run_show_model

    add_show_arguments(parser)
    parser.set_defaults(run=run_show_model)


def _history(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import history as cli

    cli.add_arguments(parser)


def _settings(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli import settings as cli

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


def _of_package(name: str) -> Callable[[argparse.ArgumentParser], None]:
    """Return the arguments of a command that the installer's package runs."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.set_defaults(run=lambda _: run_by_package(name, ()))

    return add_arguments


def _completion(parser: argparse.ArgumentParser) -> None:
    from medusa_core.cli.completion import add_completion_arguments, run_completion

    add_completion_arguments(parser, COMMANDS)
    parser.set_defaults(run=run_completion)


COMMANDS = {
    "run": CommandEntry("Chat", "chat with a model in the terminal", _run),
    "generate": CommandEntry("", "answer one prompt, with all settings", _generate),
    "batch": CommandEntry("", "answer a file of prompts, many at a time", _batch),
    "history": CommandEntry("", "export and import conversations; or settings", _history),
    "settings": CommandEntry("", "export and import settings and presets", _settings, False),
    "list": CommandEntry("Models", "models and heads on this computer", _of_library("list")),
    "pull": CommandEntry("", "fetch a model and its heads from the Hub", _pull),
    "show": CommandEntry("", "what a model is, by its files", _show),
    "rm": CommandEntry("", "remove a model from the cache", _of_library("rm")),
    "verify": CommandEntry("", "compare a model's files with their hashes", _of_library("verify")),
    "import": CommandEntry("", "list a model that lies in a folder", _of_library("import")),
    "convert": CommandEntry(
        "", "turn pickled heads or weights into safetensors", _of_library("convert")
    ),
    "plan": CommandEntry("", "does a model fit, and where does the memory go?", _plan),
    "serve": CommandEntry("Run", "let other programs use a model by HTTP", _serve),
    "ps": CommandEntry("", "which models are loaded, and by whom", _ps),
    "serve-layers": CommandEntry("", "let other machines use layers of a model", _serve_layers),
    "doctor": CommandEntry("", "what works here, and what to do where it doesn't", _doctor),
    "update": CommandEntry(
        "", "install a newer version; or repair it, or uninstall it", _of_package("update")
    ),
    "repair": CommandEntry("", "make what is installed afresh", _of_package("repair"), False),
    "uninstall": CommandEntry(
        "", "remove the program of this user", _of_package("uninstall"), False
    ),
    "completion": CommandEntry("", "let a shell complete commands and names", _completion),
    "bench": CommandEntry("Speed", "compare decoding modes and peers on prompts", _bench),
    "train": CommandEntry("", "train heads or a phrase table; eval measures heads", _train),
    "eval": CommandEntry("", "measure heads", _eval, False),
    "heads": CommandEntry("", "look at heads and other drafters, convert Medusa heads", _heads),
}


if __name__ == "__main__":
    sys.exit(main())
