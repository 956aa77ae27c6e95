"""Menu actions for selected text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QMenu

from app.chat.messages.text_view import TextView


def add_text_actions(menu: QMenu, view: TextView, quote: Callable[[str], object]) -> None:
    """Add actions that copy and quote the selected text."""
    has_selection = view.textCursor().hasSelection()
    copy = menu.addAction(QCoreApplication.translate("Chat", "Copy"), view.copy)
    copy.setEnabled(has_selection)
    quoting = menu.addAction(
        QCoreApplication.translate("Chat", "Quote in the next message"),
        lambda: quote(view.selected),
    )
    quoting.setEnabled(has_selection)
