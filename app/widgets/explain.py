"""What a widget is, in a sentence: for the mouse and for those who listen."""

from __future__ import annotations

from html import escape

from PySide6.QtWidgets import QWidget


def wrapped(text: str) -> str:
    """A tooltip that wraps: Qt shows plain ones in one line, however long."""
    lines = escape(text).replace("\n", "<br>")
    return f"<qt>{lines}</qt>" if text else ""


def explain(widget: QWidget, text: str) -> None:
    """Give a widget its sentence, as tooltip and as accessible description."""
    widget.setToolTip(wrapped(text))
    widget.setAccessibleDescription(text)
