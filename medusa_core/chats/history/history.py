"""The history: all conversations of a user in one SQLite file.

A `History` is used by one thread; other programs may use the same file. Each write is one short
transaction, which is committed when the method returns.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

from medusa_core.chats.history.answers import Answers
from medusa_core.chats.history.copying import Copying
from medusa_core.chats.history.exchange.our_json import Json
from medusa_core.chats.history.importing import (
    PIECE_S,
    ImportCounts,
    Importing,
)
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.part import HistoryClock, HistoryPart
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.chats.history.search import Search
from medusa_core.errors import Cancelled, StorageError
from medusa_core.i18n import tr
from medusa_core.system.storage.database import (
    Database,
    open_database,
    open_in_memory,
    use_alone,
)

_MOST_TRACE_BYTES = 200_000_000


class Traces(HistoryPart):
    """The part of the history that stores traces of answers."""

    def put_trace(
        self, message_id: str, packed: bytes, most_bytes: int = _MOST_TRACE_BYTES
    ) -> None:
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


log = logging.getLogger(__name__)

_BACKUP_AGE_S = 3600.0


class History(Answers, Importing, Copying, Search, Traces):
    """The database of all conversations; its base classes each do one part.

    Attributes:
        notice: A sentence about a problem at opening; empty for none.
    """

    def __init__(
        self, path: Path, clock: HistoryClock = time.time, *, database: Database | None = None
    ) -> None:
        """Open or create the history.

        Args:
            path: The database file.
            clock: Returns the Unix time in seconds.
            database: Database to use instead of the file.

        Raises:
            StorageError: The file can't be opened, or a newer version wrote it.
        """
        if database is None:
            first = partial(_tidy, clock=clock, backup_age_s=_BACKUP_AGE_S)
            database = open_database(
                path, MIGRATIONS, mend=mend, checkpoints_itself=False, first=first
            )
        super().__init__(database, clock)
        self._listeners = []
        self._is_open = True
        self.notice = database.notice

    @property
    def is_saved(self) -> bool:
        """Whether the history is in a file, and not only in memory."""
        return self._database.path is not None

    def changed_elsewhere(self) -> bool:
        """Return whether another program or thread has written since the last call.

        Raises:
            StorageError: The history can't be read.
        """
        return self._database.changed_elsewhere()

    def another(self) -> History:
        """Open the history again, for another thread; only if `is_saved`.

        Raises:
            StorageError: The file can't be opened.
        """
        assert self._database.path is not None
        return History(self._database.path, self._clock)

    async def import_in_thread(self, conversations: Iterable[Json]) -> ImportCounts:
        """Import conversations in a thread, with its own connection.

        Conversations are visible only once all of them are imported. The rest of an interrupted
        import is removed at once, or when the history is opened next.

        Args:
            conversations: See `import_all`.

        Raises:
            StorageError: The database can't be written.
        """
        is_stopped = threading.Event()

        def work() -> ImportCounts:
            """Import with a connection of this thread, in pieces."""
            with closing(self.another()) as other:
                pieces = other.import_in_pieces(conversations)
                while not is_stopped.wait(PIECE_S):  # other writers get the lock meanwhile
                    try:
                        next(pieces)
                    except StopIteration as done:
                        return cast("ImportCounts", done.value)
                pieces.close()
            raise Cancelled(tr("The import was stopped."))

        if not self.is_saved:
            return self.import_all(conversations)
        try:
            return await asyncio.to_thread(work)
        finally:
            is_stopped.set()

    def problems(self) -> tuple[str, ...]:
        """Check the whole file, and return SQLite's messages about damage.

        Raises:
            StorageError: The file can't be read.
        """
        found = self._database.rows("PRAGMA integrity_check")
        found += self._database.rows("PRAGMA foreign_key_check")
        return tuple(" ".join(map(str, row)) for row in found if row != ("ok",))

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database file; best called while idle.

        Raises:
            StorageError: The file can't be written.
        """
        self._database.checkpoint()

    def close(self) -> None:
        """Close the file, and renew its backup if no other program uses it; safe to call twice."""
        self._database.close()
        if self._is_open and self._database.path is not None:
            try:
                use_alone(self._database.path, partial(_tidy, clock=self._clock))
            except StorageError as error:
                log.warning("the backup of the history isn't renewed: %s", error)
        self._is_open = False


def open_history(path: Path, clock: HistoryClock = time.time) -> History:
    """Open the history file; fall back to a history in memory instead of raising an error.

    Readable conversations are available in either case. `notice` says if it is in memory only.

    Args:
        path: The database file.
        clock: Returns the Unix time in seconds.
    """
    try:
        return History(path, clock)
    except StorageError as error:
        failure = error
    except Exception:  # the window must start, whatever a changed file holds
        log.warning("the history can't be opened", exc_info=True)
        failure = StorageError(tr("{0} can't be used.", path), "The log says why.")
    log.warning("the history is kept in memory: %s", failure)
    notice = tr("{0} What you write today won't be remembered. {1}", failure.message, failure.hint)
    return History(path, clock, database=open_in_memory(MIGRATIONS, path, notice))


def _tidy(database: Database, clock: HistoryClock, backup_age_s: float = 0.0) -> None:
    """End the answers and imports of killed programs, and renew the backup.

    Args:
        database: Database that no other program has open, so that unfinished answers are dead.
        clock: Returns the Unix time in seconds.
        backup_age_s: Age in seconds up to which a backup is kept.

    Raises:
        StorageError: The database can't be read or written.
    """
    Answers(database, clock).cut_unfinished()
    Importing(database, clock).remove_staged()
    database.back_up(backup_age_s)
