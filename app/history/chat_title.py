"""Default title of a conversation."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from medusa_core.api import first_words


def title_of(text: str) -> str:
    """Return the first words of a text as a title."""
    return first_words(text) or QCoreApplication.translate("History", "New chat")
