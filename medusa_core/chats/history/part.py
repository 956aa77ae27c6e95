"""Base of the parts of the history."""

from __future__ import annotations

from collections.abc import Callable

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.system.storage.database import Database

HistoryClock = Callable[[], float]


class HistoryPart:
    """A part of the history, on a shared database.

    SQLite reuses the numbers of deleted rows, and other programs may delete rows at any time. So an
    id is looked up in the transaction that uses its number.
    """

    def __init__(self, database: Database, clock: HistoryClock) -> None:
        self._database = database
        self._clock = clock

    def _conversation(self, conversation_id: str) -> int:
        """Return the row number of a conversation.

        Raises:
            RequestError: The conversation was deleted.
        """
        return self._number("conversations", conversation_id, "conversation")

    def _message(self, message_id: str) -> int:
        """Return the row number of a message.

        Raises:
            RequestError: The message was deleted.
        """
        return self._number("messages", message_id, "message")

    def _number(self, table: str, name: str, noun: str) -> int:
        """Return the row number of an id; a deleted row raises."""
        row = self._database.row(f"SELECT number FROM {table} WHERE id = ?", name)
        if row is None:
            raise RequestError(
                tr("The {0} is not in the history any more.", noun),
                "It was deleted: begin a new one.",
            )
        return int(row[0])

    def _next_place(self, now_s: float) -> float:
        """Return a sort key above all others, even if the clock was set back."""
        row = self._database.row("SELECT max(place) FROM conversations")
        top = row[0] if row and row[0] is not None else 0.0
        return max(now_s, float(top) + 0.001)


def clean(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode."""
    return text.encode("utf-8", "replace").decode()
