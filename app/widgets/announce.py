"""Says something aloud through the screen reader, if there is one."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent


def announce(speaker: QObject, words: str, *, is_urgent: bool = False) -> None:
    """Say something that the eye sees change, and that has no focus.

    Args:
        speaker: The widget in whose name is spoken.
        words: What is said; nothing for an empty text.
        is_urgent: It interrupts what is read at the moment.
    """
    if words and QAccessible.isActive():
        event = QAccessibleAnnouncementEvent(speaker, words)
        if is_urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)
