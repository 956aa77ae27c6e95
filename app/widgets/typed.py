"""Keys that write text, as opposed to those that command."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

_NO_COMMANDS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier


def types_text(event: QKeyEvent) -> bool:
    """Whether a key writes a character."""
    held = event.modifiers() & ~_NO_COMMANDS
    return bool(event.text()) and event.text().isprintable() and not held
