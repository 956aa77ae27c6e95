"""Files dropped on a window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QDropEvent

from app.i18n.words import QT_TRANSLATE_NOOP

IS_MODEL = QT_TRANSLATE_NOOP("Library", "This is a model. Import and load it?")


def accept_copy(event: QDropEvent) -> bool:
    """Accept a drag or a drop as a copy, since the source of a move deletes its file.

    Returns:
        Whether it is accepted; a drag that only moves isn't.
    """
    for action in (Qt.DropAction.CopyAction, Qt.DropAction.LinkAction):
        if event.possibleActions() & action:
            event.setDropAction(action)
            event.accept()
            return True
    event.ignore()
    return False


def is_model(path: Path) -> bool:
    """Whether a file or a folder looks like a model."""
    return path.suffix.lower() == ".gguf" or (path / "config.json").is_file()
