"""The first start in a terminal, the twin of `window.py`."""

from dataclasses import replace

from installer.bootstrap import request
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted, install_version
from installer.bootstrap.program import Program
from installer.bootstrap.situation import Kind, Situation
from installer.bootstrap.start import give_up, last_words
from installer.bootstrap.terminal import (
    TerminalReporter,
    ask,
    describe_installation,
    is_conversation,
    model_question,
)
from installer.console import say
from installer.errors import SetupError

NOT_SET_UP_STATUS = 2


def set_up(data: ProgramData, program: Program, found: Situation, *, agrees: bool) -> bool:
    """Ask, and install; returns whether the user agreed.

    Args:
        data: where it goes.
        program: the package.
        found: nothing is installed, or what is installed is damaged.
        agrees: don't ask.

    Raises:
        SetupError: nobody can be asked, or the installation isn't possible.
    """
    if found.kind is Kind.DAMAGED:
        assert found.current is not None
        say(f"Medusa Chat {found.current} isn't complete any more.")
        wanted = request.installed(data, program, found.current)
    else:
        wanted = request.shipped(data, program)
    problem = "Medusa Chat isn't set up for this user yet."
    if not confirm(data, wanted, "medusa update --yes", agrees=agrees, problem=problem):
        return False
    if found.kind is Kind.FIRST:
        wanted = replace(wanted, with_model=agrees or ask(model_question(), default=True))
    carry_out(data, wanted, agrees=agrees)
    return True


def confirm(
    data: ProgramData,
    wanted: Wanted,
    command: str,
    *,
    agrees: bool,
    problem: str = "Nobody can be asked here.",
) -> bool:
    """Describe an installation, and ask for it.

    Args:
        data: Where it goes.
        wanted: What is installed.
        command: What to type if nobody can be asked.
        agrees: Don't ask.
        problem: What is said if nobody can be asked.

    Raises:
        SetupError: Nobody can be asked.
    """
    if not agrees and not is_conversation():
        raise SetupError(problem, command, NOT_SET_UP_STATUS)
    say(describe_installation(data, wanted))
    return agrees or ask("Go on?", default=True)


def carry_out(data: ProgramData, wanted: Wanted, *, agrees: bool, is_repair: bool = False) -> None:
    """Install, and print the progress.

    Raises:
        SetupError: the installation isn't possible.
    """
    reporter = TerminalReporter(agrees=agrees)
    try:
        install_version(data, wanted, reporter, is_repair=is_repair)
    finally:
        reporter.end()
    say(f"Medusa Chat {wanted.version} is ready.")


def offer_way_out(data: ProgramData, program: Program, found: Situation) -> None:
    """After failed starts, offer to restore the previous version, or else to repair.

    Raises:
        SetupError: the installation isn't possible.
    """
    assert found.current is not None
    say(
        f"Medusa Chat {found.current} failed to start twice. What it said the last time:\n"
        f"{last_words(data).strip() or 'nothing'}"
    )
    if found.before is not None and ask(f"Use version {found.before} again?", default=True):
        give_up(data)
    elif ask("Repair it? Conversations, models and settings stay.", default=True):
        carry_out(
            data, request.installed(data, program, found.current), agrees=False, is_repair=True
        )
