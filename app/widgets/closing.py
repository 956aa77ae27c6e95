"""The shortcut that closes dialogs."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog


def close_by_key(dialog: QDialog) -> None:
    """Let Ctrl+W close a dialog."""
    QShortcut(QKeySequence("Ctrl+W"), dialog).activated.connect(dialog.close)
