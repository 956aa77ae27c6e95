"""Tell key presses that insert text from those that are commands."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

_NO_COMMANDS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier


def types_text(event: QKeyEvent) -> bool:
    """Whether a key press inserts a printable character."""
    held = event.modifiers() & ~_NO_COMMANDS
    return bool(event.text()) and event.text().isprintable() and not held
