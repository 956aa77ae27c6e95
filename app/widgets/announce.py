"""Announcements by the screen reader."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent


def announce(speaker: QObject, words: str, *, is_urgent: bool = False) -> None:
    """Announce a visible change of a widget without focus.

    Args:
        speaker: The changed widget.
        words: Text; an empty one isn't announced.
        is_urgent: Whether it interrupts the current speech.
    """
    if words and QAccessible.isActive():
        event = QAccessibleAnnouncementEvent(speaker, words)
        if is_urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)
