"""What can be done with the selected text of a message."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QMenu

from app.chat.messages.text_view import TextView


def add_text_actions(menu: QMenu, view: TextView, quote: Callable[[str], object]) -> None:
    """Offer to copy what is selected, and to quote it."""
    has_selection = view.textCursor().hasSelection()
    copy = menu.addAction(QCoreApplication.translate("Chat", "Copy"), view.copy)
    copy.setEnabled(has_selection)
    quoting = menu.addAction(
        QCoreApplication.translate("Chat", "Quote in the next message"),
        lambda: quote(view.selected),
    )
    quoting.setEnabled(has_selection)
