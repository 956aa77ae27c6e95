"""`medusa update` and `medusa repair`."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from installer.bootstrap import request
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.records import TORCH_CHOICES, read_current
from installer.bootstrap.terminal import NOT_SET_UP_STATUS, ask, carry_out, confirm, model_question
from installer.bootstrap.update_source import find_update
from installer.bootstrap.version import is_newer
from installer.console import say
from installer.errors import SetupError


def update(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    """Update, or install for the first time; a failure keeps the current version.

    Raises:
        SetupError: the installation isn't possible.
    """
    options = update_parser().parse_args(argv)
    request.choose_settings(data, options.mirror, options.torch)
    if options.source is None:
        wanted = request.shipped(data, program)
    else:
        wanted = find_update(data, program, options.source)
    current = read_current(data).version
    if current is not None and data.environment(current).is_complete:
        if wanted.version == current:
            say(f"Medusa Chat {current} is installed. `medusa repair` makes it afresh.")
            return 0
        if is_newer(current, wanted.version):
            say(f"Medusa Chat {current} is installed; {wanted.version} is older.")
            if options.source is None:
                return 0
    if not confirm(data, wanted, "medusa update --yes", agrees=options.yes):
        return 1
    if current is None and not options.no_model:
        wanted = replace(wanted, with_model=options.yes or ask(model_question(), default=True))
    _carry_out(data, wanted, current, agrees=options.yes)
    return 0


def repair(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    """Install the current version again; the existing one is kept until the new one is complete.

    Raises:
        SetupError: Something prevents it.
    """
    options = repair_parser().parse_args(argv)
    request.choose_settings(data, options.mirror, options.torch)
    current = read_current(data).version
    if current is None:
        raise SetupError("Nothing is installed yet.", "medusa update", NOT_SET_UP_STATUS)
    wanted = request.installed(data, program, current)
    if not confirm(data, wanted, "medusa repair --yes", agrees=options.yes):
        return 1
    say("Conversations, models and settings stay as they are.")
    carry_out(data, wanted, agrees=options.yes, is_repair=True)
    return 0


def _carry_out(data: ProgramData, wanted: Wanted, current: str | None, *, agrees: bool) -> None:
    try:
        carry_out(data, wanted, agrees=agrees)
    except SetupError as error:
        if current is None or not data.environment(current).is_complete:
            raise
        raise SetupError(
            f"The update to {wanted.version} failed; version {current} still runs.\n"
            f"{error.message}",
            error.mend,
        ) from error


def repair_parser() -> argparse.ArgumentParser:
    """Return the arguments of `medusa repair`."""
    parser = argparse.ArgumentParser(
        prog="medusa repair",
        description="Make the installed version afresh. Conversations, models and settings stay.",
    )
    _add_source_arguments(parser)
    return parser


def update_parser() -> argparse.ArgumentParser:
    """Return the arguments of `medusa update`."""
    parser = argparse.ArgumentParser(
        prog="medusa update",
        description="Install the version that the package of Medusa Chat brought, or another one. "
        "Conversations, models and settings stay as they are.",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SOURCE",
        help="a wheel, or a folder that holds one",
    )
    _add_source_arguments(parser)
    parser.add_argument(
        "--no-model", action="store_true", help="the first time: without SmolLM2 135M (93 MB)"
    )
    return parser


def _add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that update and repair share."""
    parser.add_argument(
        "--mirror",
        metavar="PLACE",
        help="a folder of packages or the address of a package index, kept for later; "
        "empty for the usual one",
    )
    parser.add_argument(
        "--torch",
        choices=TORCH_CHOICES,
        help="build of torch, kept for later; auto looks at the graphics cards",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing")
