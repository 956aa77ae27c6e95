"""`medusa update`: the version that the package brought, or one from elsewhere."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from installer.bootstrap import request
from installer.bootstrap.current import read_current
from installer.bootstrap.first_start import carry_out
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.settings import TORCH_CHOICES
from installer.bootstrap.terminal import ask, describe_installation, is_conversation, model_question
from installer.bootstrap.update_source import find_update
from installer.bootstrap.version import is_newer
from installer.console import say
from installer.errors import SetupError

NOT_SET_UP_STATUS = 2


def run(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    """Update, or set up for the first time; what runs now stays if that fails.

    Raises:
        SetupError: something stands in the way.
    """
    options = _parser().parse_args(argv)
    request.choose_settings(data, options.mirror, options.torch)
    if options.source is None:
        wanted = request.shipped(data, program)
    else:
        wanted = find_update(data, program, options.source, agrees=options.yes)
    current = read_current(data).version
    if current is not None and data.environment(current).is_complete:
        if wanted.version == current:
            say(f"Medusa Chat {current} is installed. `medusa repair` makes it afresh.")
            return 0
        if is_newer(current, wanted.version):
            say(f"Medusa Chat {current} is installed; {wanted.version} is older.")
            if options.source is None:
                return 0
    if not options.yes and not is_conversation():
        raise SetupError("Nobody can be asked here.", "medusa update --yes", NOT_SET_UP_STATUS)
    say(describe_installation(data, wanted))
    if not (options.yes or ask("Go on?", default=True)):
        return 1
    if current is None and not options.no_model:
        wanted = replace(wanted, with_model=options.yes or ask(model_question(), default=True))
    _carry_out(data, wanted, current, agrees=options.yes)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="medusa update",
        description="Install the version that the package of Medusa Chat brought, or another one. "
        "Conversations, models and settings stay as they are.",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SOURCE",
        help="a wheel, a folder that holds one, or the address of a package index of your own",
    )
    add_source_arguments(parser)
    parser.add_argument(
        "--no-model", action="store_true", help="the first time: without SmolLM2 135M (93 MB)"
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    return parser


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of what is kept for later installations too."""
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
