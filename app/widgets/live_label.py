"""Label whose changes are announced."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.widgets.announce import announce


class LiveLabel(QLabel):
    """Wrapped label of plain text for events, such as that a search found nothing."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setObjectName("notice")
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def setText(self, text: str) -> None:
        """Show a text; screen readers announce it while its window is visible."""
        is_new, around = text != self.text(), self.parentWidget()
        super().setText(text)
        if is_new and around is not None and around.isVisible():
            announce(self, text)
