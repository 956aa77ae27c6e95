"""Standard streams, and messages before there is a window."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TextIO

_TITLE = "Medusa Chat"
_ERROR_ICON = 0x10


def provide_streams() -> None:
    """Create standard streams for a program without a terminal on Windows.

    There they are None, on which libraries that print fail.
    """
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def report_start_failure(problem: str) -> None:
    """Report why the application can't start: on stderr, or in a message box without one."""
    sys.stderr.write(f"{problem}\n")
    if sys.platform == "win32" and getattr(sys.stderr, "name", "") == os.devnull:
        ctypes.windll.user32.MessageBoxW(None, problem, _TITLE, _ERROR_ICON)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
