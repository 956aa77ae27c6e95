"""Search field that is cleared by Esc."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit


class SearchEdit(QLineEdit):
    """Search field in which Esc clears the text before the window's shortcuts get the key."""

    def __init__(self, name: str, placeholder: str = "") -> None:
        """Create an empty field.

        Args:
            name: Accessible name.
            placeholder: Placeholder text; the name by default.
        """
        super().__init__()
        self.setPlaceholderText(placeholder or name)
        self.setAccessibleName(name)
        self.setClearButtonEnabled(True)

    def event(self, event: QEvent) -> bool:
        """Keep Esc from the window's shortcuts while there is something to clear."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape
            and self.text()
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
            super().keyPressEvent(event)
