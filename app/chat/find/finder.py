"""Searches a conversation's messages and highlights matches."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject

from app.chat.conversation_view import ConversationView
from app.chat.find.find_bar import FindBar
from app.chat.find.finding import find_all
from app.chat.messages.message_widgets import MessageWidget
from app.theme.appearance import Appearance


class Hit(NamedTuple):
    """A match.

    Attributes:
        message: Its message.
        number: Index of the match in its message.
    """

    message: MessageWidget
    number: int


class Finder(QObject):
    """Connects the search bar to the messages.

    Attributes:
        bar: The search bar.
        hits: Matches in the order of the conversation.
    """

    def __init__(self, bar: FindBar, view: ConversationView, appearance: Appearance) -> None:
        super().__init__(bar)
        self.bar = bar
        self.hits: tuple[Hit, ...] = ()
        self._view = view
        self._appearance = appearance
        self._place = 0
        bar.changed.connect(self.search)
        bar.moved.connect(self.move)
        bar.closed.connect(self._forget)
        view.changed.connect(self._messages_changed)

    def search(self, words: str) -> None:
        """Search and show the last match, which is nearest to the usual scroll position."""
        self._find_hits(words)
        self._place = max(0, len(self.hits) - 1)
        self._show()

    def move(self, step: int) -> None:
        """Go to the next (1) or previous (−1) match."""
        if self.hits:
            # Messages may have grown since.
            self._find_hits(self.bar.edit.text())
            self._place = (self._place + step) % len(self.hits)
        self._show()

    def _find_hits(self, words: str) -> None:
        self.hits = tuple(
            Hit(message, number)
            for message in self._view.messages
            for number in range(len(find_all(words, message.searched_text)))
        )

    def _show(self) -> None:
        self.bar.show_count(self._place, len(self.hits))
        words = self.bar.edit.text()
        current = self.hits[self._place] if self._place < len(self.hits) else None
        found = {hit.message for hit in self.hits}
        theme = self._appearance.theme
        for message in self._view.messages:
            number = current.number if current and message is current.message else -1
            if number >= 0:
                self._view.populate_message(message)
            place = message.highlight(words if message in found else "", number, theme)
            if place is not None:
                self._view.reveal(message, place)

    def _messages_changed(self) -> None:
        self.hits = tuple(hit for hit in self.hits if hit.message in self._view.messages)
        if not self.bar.isHidden():
            self._place = min(self._place, max(0, len(self.hits) - 1))
            self.bar.show_count(self._place, len(self.hits))

    def _forget(self) -> None:
        self.hits = ()
        for message in self._view.messages:
            message.highlight("", -1, self._appearance.theme)
