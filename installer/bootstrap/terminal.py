"""The first start, an update and a repair in a terminal: what is asked, and how it goes."""

import sys
from dataclasses import replace

from installer.bootstrap import request
from installer.bootstrap.first_model import NAME
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted, install_version
from installer.bootstrap.program import Program
from installer.bootstrap.request import NAMES, describe
from installer.bootstrap.situation import Kind, Situation
from installer.bootstrap.space import FIRST_MODEL, shown_bytes
from installer.bootstrap.start import give_up, last_words
from installer.console import ProgressLine, say
from installer.errors import SetupError


class TerminalReporter:
    """Reporter that prints steps, and one line of progress that overwrites itself.

    Attributes:
        agrees: every question is answered by yes.
    """

    def __init__(self, *, agrees: bool = False) -> None:
        self.agrees = agrees
        self._progress = ProgressLine()

    def step(self, text: str) -> None:
        """Print a new step."""
        self._progress.clear()
        say(f"{text} …")

    def line(self, text: str) -> None:
        """Show a line of uv's output until the next one."""
        self._progress.show(text)

    def amount(self, done: int, total: int) -> None:
        """Show bytes on the disk, of about how many in all."""
        self._progress.show(f"{shown_bytes(done)} of about {shown_bytes(total)}")

    def confirm(self, question: str) -> bool:
        """Ask; without a terminal the answer is no."""
        self._progress.clear()
        return self.agrees or ask(question, default=False)

    def is_cancelled(self) -> bool:
        """Return False, since Ctrl-C cancels."""
        return False

    def end(self) -> None:
        """Remove the line of progress."""
        self._progress.clear()


def is_conversation() -> bool:
    """Return whether a user can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def ask(question: str, *, default: bool) -> bool:
    """Ask for yes or no; without a terminal the answer is no."""
    if not is_conversation():
        return False
    choices = "[Y/n]" if default else "[y/N]"
    try:
        answer = input(f"{question} {choices} ").strip().lower()
    except EOFError:
        return False
    return answer.startswith("y") if answer else default


def describe_installation(data: ProgramData, wanted: Wanted) -> str:
    """Describe what will be installed where, how large it is, and where it comes from."""
    lines = [f"Medusa Chat {wanted.version} will be set up for this user:"]
    lines += [
        f"  {name:<9} {fact}" for name, fact in zip(NAMES, describe(data, wanted), strict=True)
    ]
    return "\n".join(lines)


def model_question() -> str:
    """Ask whether the first model is wanted."""
    return (
        f"Also fetch {NAME} ({shown_bytes(FIRST_MODEL.download)}, licence Apache-2.0), a small "
        "model to begin with?"
    )


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
