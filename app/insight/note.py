"""Words under a panel."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel


def note(text: str = "") -> QLabel:
    """A wrapped label of plain text: what it says may hold tokens."""
    label = QLabel(text)
    label.setObjectName("insightNote")
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label
