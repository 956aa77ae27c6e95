"""The first start, an update and a repair in a terminal: what is asked, and how it goes."""

import sys

from installer.bootstrap.first_model import NAME
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.request import NAMES, describe
from installer.bootstrap.space import FIRST_MODEL, shown_bytes
from installer.console import ProgressLine, say


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
