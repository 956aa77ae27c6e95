"""Sentences on the terminal, and one line of progress that overwrites itself."""

import shutil
import sys
from pathlib import Path


def say(text: str) -> None:
    """Print one sentence and flush."""
    print(text, flush=True)


def complain(message: str, mend: str = "") -> None:
    """Print an error and, on its own line, its remedy on standard error."""
    text = f"\n{message}"
    if mend:
        text += "\nWhat to do:\n" + "\n".join(f"    {line}" for line in mend.splitlines())
    print(text, file=sys.stderr, flush=True)


def complain_about_disk(error: OSError, folder: Path) -> None:
    """Print what the system says about a file, or about `folder` if the error names none."""
    complain(
        f"{error.filename or folder}: {error.strerror or error}.",
        "Check that this disk can be written, and its room.",
    )


class ProgressLine:
    """One line with the latest output of a long command; silent without a terminal."""

    def __init__(self) -> None:
        self._watched = sys.stdout.isatty()

    def show(self, text: str) -> None:
        """Replace the line by `text`, cut to the width of the terminal."""
        if self._watched:
            width = shutil.get_terminal_size().columns - 4
            print(f"\r\033[2K  {text.strip()[:width]}", end="", flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._watched:
            print("\r\033[2K", end="", flush=True)
