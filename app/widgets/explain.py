"""Explanations of widgets, as tooltips and for screen readers."""

from __future__ import annotations

from html import escape

from PySide6.QtWidgets import QWidget


def wrapped(text: str) -> str:
    """Return a tooltip that wraps; Qt shows plain text in one line."""
    lines = escape(text).replace("\n", "<br>")
    return f"<qt>{lines}</qt>" if text else ""


def explain(widget: QWidget, text: str) -> None:
    """Set a widget's tooltip and accessible description."""
    widget.setToolTip(wrapped(text))
    widget.setAccessibleDescription(text)
