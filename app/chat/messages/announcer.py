"""Reads an answer aloud through the screen reader, a sentence at a time."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent

from app.chat.messages.sentences import SentenceStream


class Announcer:
    """Announces whole sentences, since single tokens can't be followed by ear.

    Args:
        speaker: The widget in whose name is spoken.
    """

    def __init__(self, speaker: QObject) -> None:
        self._speaker = speaker
        self._sentences = SentenceStream()

    def feed(self, text: str) -> None:
        """Announce the sentences that this text completes."""
        if QAccessible.isActive():
            for sentence in self._sentences.feed(text):
                self.announce(sentence)

    def finish(self) -> None:
        """Announce what is left."""
        rest = self._sentences.finish()
        if rest:
            self.announce(rest)

    def announce(self, words: str) -> None:
        """Announce something at once."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._speaker, words))
