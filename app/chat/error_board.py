"""Errors in the conversation, until they are read."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.chat.announcer import Announcer
from app.chat.chat_page import ChatPage
from app.chat.message_widgets import ErrorCard
from app.theme.appearance import Appearance
from medusa_core.messages import Failed


class ErrorBoard(QObject):
    """Shows errors at the end of the conversation, and takes them away again.

    Signals:
        retry_requested: What failed is to be tried again.
        failure_shown: This card (an `ErrorCard`) tells of this failure (a `Failed`).
    """

    retry_requested = Signal()
    failure_shown = Signal(object, object)

    def __init__(self, page: ChatPage, appearance: Appearance) -> None:
        super().__init__()
        self._page = page
        self._appearance = appearance

    def show(self, message: str, hint: str, *, can_retry: bool = False) -> ErrorCard:
        """Show an error, and read it aloud to those who listen; returns its card."""
        card = ErrorCard(message, hint, self._appearance, can_retry=can_retry)
        card.dismissed.connect(lambda: self._remove(card))
        card.retry_requested.connect(lambda: self._retry(card))
        card.acted.connect(lambda: self._remove(card))
        self._page.conversation.add(card)
        self._page.show_messages(True)
        Announcer(card).say(f"{message} {hint}")
        return card

    def show_failure(self, failed: Failed, *, can_retry: bool = False) -> None:
        """Show a failure of the engine; whoever knows a remedy puts it on the card."""
        card = self.show(failed.message, failed.hint, can_retry=can_retry)
        self.failure_shown.emit(card, failed)

    def _retry(self, card: ErrorCard) -> None:
        self._remove(card)
        self.retry_requested.emit()

    def _remove(self, card: ErrorCard) -> None:
        self._page.conversation.remove(card)
        self._page.show_messages(bool(self._page.conversation.messages))
