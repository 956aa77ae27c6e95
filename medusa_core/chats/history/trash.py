"""The trash: conversations that can be restored until it is emptied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from medusa_core.chats.history.part import HistoryPart
from medusa_core.errors import RequestError
from medusa_core.i18n import tr

OnEmptied = Callable[[tuple[str, ...]], None]


class Trash(HistoryPart):
    """The part of the history that deletes and restores conversations."""

    _listeners: list[OnEmptied]

    def on_emptied(self, listener: OnEmptied) -> None:
        """Call a function with the ids of deleted conversations, to delete copies of their text."""
        self._listeners.append(listener)

    def trash(self, conversation_ids: Iterable[str]) -> None:
        """Move conversations to the trash.

        Raises:
            StorageError: The database can't be written.
        """
        now_s = max(0.0, self._clock())
        with self._database.transaction():
            self._database.write_many(
                "UPDATE conversations SET trashed_s = ? WHERE id = ?",
                [(now_s, name) for name in conversation_ids],
            )

    def restore(self, conversation_ids: Iterable[str]) -> None:
        """Restore conversations from the trash.

        Raises:
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            self._database.write_many(
                "UPDATE conversations SET trashed_s = NULL WHERE id = ?",
                [(name,) for name in conversation_ids],
            )

    def empty_trash(self, conversation_ids: Sequence[str] | None = None) -> None:
        """Delete conversations of the trash for good, in database, index, log and backups.

        Args:
            conversation_ids: Ids of conversations in the trash; None for all.

        Raises:
            StorageError: The database can't be written.
            RequestError: A backup that has them can't be deleted.
        """
        wanted = None if conversation_ids is None else set(conversation_ids)
        with self._database.transaction():
            found = self._database.rows("SELECT number, id FROM conversations WHERE trashed_s >= 0")
            gone = [(number, name) for number, name in found if wanted is None or name in wanted]
            if gone:
                with suppress(RequestError):  # so that a kill leaves no backup with them; see below
                    self._remove("backup")
            for number, name in gone:
                self._delete(number, name)
            if gone:
                # FTS5 keeps deleted words until its segments are merged.
                for index in ("message_words", "title_words"):
                    self._database.write(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
        for listener in self._listeners if gone else ():
            listener(tuple(name for _, name in gone))
        # Even if nothing was deleted: the last call may have failed after its transaction.
        self._database.checkpoint(truncates=True)
        self._remove("backup*")
        self._database.back_up()

    def set_aside(self) -> tuple[Path, ...]:
        """Return renamed damaged files, which may contain deleted conversations."""
        return self._beside("damaged-*")

    def remove_set_aside(self) -> None:
        """Delete damaged files that were renamed.

        Raises:
            RequestError: One of them can't be deleted.
        """
        self._remove("damaged-*")

    def _delete(self, number: int, name: str) -> None:
        """Delete a conversation with its messages and index entries."""
        write = self._database.write
        write(
            "DELETE FROM message_words WHERE rowid IN"
            " (SELECT number FROM messages WHERE conversation = ?)",
            number,
        )
        write("DELETE FROM title_words WHERE rowid = ?", number)
        write("DELETE FROM messages WHERE conversation = ?", number)
        write("DELETE FROM conversations WHERE number = ?", number)
        write("DELETE FROM blobs WHERE number NOT IN (SELECT blob FROM images)")
        for table in ("drafts", "draft_files"):
            write(f"DELETE FROM {table} WHERE conversation_id = ?", name)

    def _beside(self, ending: str) -> tuple[Path, ...]:
        """Return files next to the database with this ending."""
        path = self._database.path
        return () if path is None else tuple(sorted(path.parent.glob(f"{path.name}.{ending}")))

    def _remove(self, ending: str) -> None:
        """Delete files next to the database."""
        for file in self._beside(ending):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise RequestError(
                    tr("{0} can't be deleted: {1}.", file, error.strerror or error),
                    "It still holds what was deleted: remove it yourself.",
                ) from error
