"""`medusa repair`: makes the environment afresh; nothing else is touched."""

import argparse
from collections.abc import Sequence

from installer.bootstrap import request
from installer.bootstrap.current import read_current
from installer.bootstrap.first_start import NOT_SET_UP_STATUS, carry_out
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.program import Program
from installer.bootstrap.terminal import ask, describe_installation, is_conversation
from installer.bootstrap.update import add_source_arguments
from installer.console import say
from installer.errors import SetupError


def run(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    """Make the version that runs afresh; what is there stays until the new one is whole.

    Raises:
        SetupError: something stands in the way.
    """
    options = _parser().parse_args(argv)
    request.choose_settings(data, options.mirror, options.torch)
    current = read_current(data).version
    if current is None:
        raise SetupError("Nothing is installed yet.", "medusa update", NOT_SET_UP_STATUS)
    wanted = request.installed(data, program, current)
    if not options.yes and not is_conversation():
        raise SetupError("Nobody can be asked here.", "medusa repair --yes", NOT_SET_UP_STATUS)
    say(describe_installation(data, wanted))
    say("Conversations, models and settings stay as they are.")
    if not (options.yes or ask("Go on?", default=True)):
        return 1
    carry_out(data, wanted, agrees=options.yes, is_repair=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="medusa repair",
        description="Make the installed version afresh. Conversations, models and settings stay.",
    )
    add_source_arguments(parser)
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    return parser
