"""Conversations that are on their way out, and are gone when the trash is emptied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from medusa_core.history.part import Part

OnEmptied = Callable[[tuple[str, ...]], None]


class Trash(Part):
    """What can still be restored, and what can't be found any more."""

    _listeners: list[OnEmptied]

    def on_emptied(self, listener: OnEmptied) -> None:
        """Be told the ids of conversations whose text must be forgotten elsewhere, too."""
        self._listeners.append(listener)

    def trash(self, conversation_ids: Iterable[str]) -> None:
        """Put conversations into the trash.

        Raises:
            StorageError: It can't be written.
        """
        now_s = max(0.0, self._clock())
        with self._database.transaction():
            self._database.write_many(
                "UPDATE conversations SET trashed_s = ? WHERE id = ?",
                [(now_s, name) for name in conversation_ids],
            )

    def restore(self, conversation_ids: Iterable[str]) -> None:
        """Take conversations out of the trash.

        Raises:
            StorageError: It can't be written.
        """
        with self._database.transaction():
            self._database.write_many(
                "UPDATE conversations SET trashed_s = NULL WHERE id = ?",
                [(name,) for name in conversation_ids],
            )

    def empty_trash(self, conversation_ids: Sequence[str] | None = None) -> None:
        """Delete conversations of the trash for good: no byte of them stays in our files.

        Args:
            conversation_ids: Which of those in the trash; None for all.

        Raises:
            StorageError: They can't be deleted.
        """
        wanted = None if conversation_ids is None else set(conversation_ids)
        found = self._database.rows("SELECT number, id FROM conversations WHERE trashed_s >= 0")
        gone = [(number, name) for number, name in found if wanted is None or name in wanted]
        with self._database.transaction():
            for number, name in gone:
                self._delete(number, name)
            if gone:
                # Deleted words stay in the index until its parts are merged.
                for index in ("message_words", "title_words"):
                    self._database.write(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
        if gone:
            self._forget_copies()
        for listener in self._listeners:
            listener(tuple(name for _, name in gone))

    def _delete(self, number: int, name: str) -> None:
        write = self._database.write
        write(
            "DELETE FROM message_words WHERE rowid IN"
            " (SELECT number FROM messages WHERE conversation = ?)",
            number,
        )
        write("DELETE FROM title_words WHERE rowid = ?", number)
        write("DELETE FROM messages WHERE conversation = ?", number)
        write("DELETE FROM conversations WHERE number = ?", number)
        write("DELETE FROM drafts WHERE conversation_id = ?", name)

    def _forget_copies(self) -> None:
        """The log and backups hold what was deleted."""
        self._database.checkpoint(truncates=True)
        path: Path | None = self._database.path
        if path is not None:
            for backup in path.parent.glob(f"{path.name}.backup-*"):
                backup.unlink(missing_ok=True)
