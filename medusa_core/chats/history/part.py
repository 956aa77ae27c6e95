"""What all parts of the history share."""

from __future__ import annotations

from collections.abc import Callable

from medusa_core.errors import RequestError
from medusa_core.system.storage.database import Database

HistoryClock = Callable[[], float]


class HistoryPart:
    """A part of the history, over the database that all of them share.

    Numbers of deleted rows are given anew. What is looked up by name is therefore written in the
    same transaction: another program may delete in between.
    """

    def __init__(self, database: Database, clock: HistoryClock) -> None:
        self._database = database
        self._clock = clock

    def _conversation(self, conversation_id: str) -> int:
        """The number of a conversation.

        Raises:
            RequestError: It isn't here any more.
        """
        return self._number("conversations", conversation_id, "conversation")

    def _message(self, message_id: str) -> int:
        """The number of a message.

        Raises:
            RequestError: It isn't here any more.
        """
        return self._number("messages", message_id, "message")

    def _number(self, table: str, name: str, what: str) -> int:
        row = self._database.row(f"SELECT number FROM {table} WHERE id = ?", name)
        if row is None:
            raise RequestError(
                f"The {what} is not in the history any more.", "It was deleted: begin a new one."
            )
        return int(row[0])

    def _next_place(self, now_s: float) -> float:
        """A place above all others, also after the clock was moved back."""
        row = self._database.row("SELECT max(place) FROM conversations")
        top = row[0] if row and row[0] is not None else 0.0
        return max(now_s, float(top) + 0.001)


def clean(text: str) -> str:
    """A text that can be stored: halves of surrogate pairs are no characters."""
    return text.encode("utf-8", "replace").decode()
