"""Recorded steps of answers, up to a total size."""

from __future__ import annotations

from medusa_core.chats.history.part import HistoryPart

_MOST_BYTES = 200_000_000


class Traces(HistoryPart):
    """The part of the history that stores traces of answers."""

    def put_trace(self, message_id: str, packed: bytes, most_bytes: int = _MOST_BYTES) -> None:
        """Save the trace of an answer, and delete the oldest traces over the limit.

        Args:
            message_id: Id of the answer.
            packed: The compressed trace.
            most_bytes: Limit of all traces together.

        Raises:
            RequestError: The answer was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._message(message_id)
            self._database.write("DELETE FROM traces WHERE message = ?", number)
            if len(packed) <= most_bytes:
                self._database.write(
                    "INSERT INTO traces (message, num_bytes, packed) VALUES (?, ?, ?)",
                    *(number, len(packed), packed),
                )
            row = self._database.row("SELECT coalesce(sum(num_bytes), 0) FROM traces")
            over = (row[0] if row else 0) - most_bytes
            while over > 0:
                oldest = self._database.row(
                    "SELECT number, num_bytes FROM traces ORDER BY number LIMIT 1"
                )
                assert oldest is not None
                self._database.write("DELETE FROM traces WHERE number = ?", oldest[0])
                over -= oldest[1]

    def trace(self, message_id: str) -> bytes | None:
        """Return the trace of an answer; None if there is none, or it was deleted.

        Raises:
            StorageError: The database can't be read.
        """
        row = self._database.row(
            "SELECT t.packed FROM traces AS t JOIN messages AS m ON m.number = t.message"
            " WHERE m.id = ?",
            message_id,
        )
        return bytes(row[0]) if row else None
