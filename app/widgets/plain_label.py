"""Wrapped label of plain text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel


def plain_label(text: str = "", name: str = "") -> QLabel:
    """Make a wrapped label whose text, such as a model's name or a token, is never markup.

    Args:
        text: Its text.
        name: Object name, by which the theme styles it.
    """
    label = QLabel(text)
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label
