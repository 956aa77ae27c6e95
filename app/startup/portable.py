"""Checks the data folder of a portable program."""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QApplication, QMessageBox

from app.desktop.screenless import SCREENLESS
from medusa_core.api import prepare_home
from medusa_core.errors import StorageError


def home_problem() -> str | None:
    """Return why `MEDUSA_HOME` can't be used, and what to do; None if it can, or isn't set."""
    try:
        prepare_home()
    except StorageError as error:
        return f"{error.message}\n{error.hint}"
    return None


def show_problem(problem: str, platform: str | None) -> None:
    """Show it in a message box, since a start by an icon has no terminal."""
    qt = QApplication([sys.argv[0], *(("-platform", platform) if platform else ())])
    if qt.platformName() not in SCREENLESS:
        QMessageBox.critical(None, "Medusa Chat", problem)
