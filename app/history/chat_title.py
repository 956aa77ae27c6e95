"""The title of a conversation that nobody has named."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from medusa_core.api import first_words


def title_of(text: str) -> str:
    """A title of the first words of a text."""
    return first_words(text) or QCoreApplication.translate("History", "New chat")
