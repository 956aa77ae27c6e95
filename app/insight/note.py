"""Text under a panel."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel


def note(text: str = "") -> QLabel:
    """Make a wrapped label of plain text, since tokens in it may look like markup."""
    label = QLabel(text)
    label.setObjectName("insightNote")
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label
