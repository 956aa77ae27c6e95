"""Where the program speaks before there is a window: a terminal, or none on Windows."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TextIO

_TITLE = "Medusa Chat"
_ERROR_ICON = 0x10


def provide_streams() -> None:
    """Give standard streams to a program that Windows started without a terminal.

    There they are None, which libraries that print don't expect.
    """
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def tell_problem(problem: str) -> None:
    """Say why there will be no window: on the terminal, or in a box where there is none."""
    sys.stderr.write(f"{problem}\n")
    if sys.platform == "win32" and getattr(sys.stderr, "name", "") == os.devnull:
        ctypes.windll.user32.MessageBoxW(None, problem, _TITLE, _ERROR_ICON)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
