"""All conversations of a user, in one file.

It is used from one thread; other programs may use the same file. Each write is one short
transaction, kept when the method returns.
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
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.part import HistoryClock
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.chats.history.search import Search
from medusa_core.chats.history.taking import (
    PIECE_S,
    Taken,
    Taking,
)
from medusa_core.chats.history.tidying import tidy
from medusa_core.chats.history.traces import Traces
from medusa_core.errors import Cancelled, StorageError
from medusa_core.system.storage.database import (
    Database,
    open_database,
    open_in_memory,
    use_alone,
)

log = logging.getLogger(__name__)

_BACKUP_AGE_S = 3600.0


class History(Answers, Taking, Copying, Search, Traces):
    """The history.

    Attributes:
        notice: What happened when it was opened, in a sentence for people; mostly empty.
    """

    def __init__(
        self, path: Path, clock: HistoryClock = time.time, *, database: Database | None = None
    ) -> None:
        """Open or make it.

        Args:
            path: Its file.
            clock: Seconds since 1970.
            database: What is used instead of the file.

        Raises:
            StorageError: It can't be opened, or a newer version made it.
        """
        if database is None:
            first = partial(tidy, clock=clock, backup_age_s=_BACKUP_AGE_S)
            database = open_database(
                path, MIGRATIONS, mend=mend, checkpoints_itself=False, first=first
            )
        super().__init__(database, clock)
        self._listeners = []
        self._is_open = True
        self.notice = database.notice

    @property
    def is_saved(self) -> bool:
        """Whether what is written outlives the program."""
        return self._database.path is not None

    def changed_elsewhere(self) -> bool:
        """Whether another program, or another thread, wrote since this was called last.

        Raises:
            StorageError: The history can't be read.
        """
        return self._database.changed_elsewhere()

    def another(self) -> History:
        """The same history once more, for another thread; only where `is_saved`.

        Raises:
            StorageError: It can't be opened.
        """
        assert self._database.path is not None
        return History(self._database.path, self._clock)

    async def take_gently(self, conversations: Iterable[Json]) -> Taken:
        """Do what `take` does in a thread, over a connection of its own.

        Conversations can't be seen until all of them are there. What is left of an import that was
        interrupted is removed at once, or when the history is opened next.

        Args:
            conversations: As for `take`.

        Raises:
            StorageError: They can't be written.
        """
        is_stopped = threading.Event()

        def work() -> Taken:
            with closing(self.another()) as other:
                pieces = other.take_in_pieces(conversations)
                while not is_stopped.wait(PIECE_S):  # whoever else writes has a turn
                    try:
                        next(pieces)
                    except StopIteration as done:
                        return cast("Taken", done.value)
                pieces.close()
            raise Cancelled("The import was stopped.")

        if not self.is_saved:
            return self.take(conversations)
        try:
            return await asyncio.to_thread(work)
        finally:
            is_stopped.set()

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the file, in SQLite's words; looks at all of it.

        Raises:
            StorageError: It can't be read.
        """
        found = self._database.rows("PRAGMA integrity_check")
        found += self._database.rows("PRAGMA foreign_key_check")
        return tuple(" ".join(map(str, row)) for row in found if row != ("ok",))

    def checkpoint(self) -> None:
        """Move what was written from the log into its file: for a moment without other work.

        Raises:
            StorageError: It can't be written.
        """
        self._database.checkpoint()

    def close(self) -> None:
        """Close the file, and renew its backup if nobody else uses it; may be called again."""
        self._database.close()
        if self._is_open and self._database.path is not None:
            try:
                use_alone(self._database.path, partial(tidy, clock=self._clock))
            except StorageError as error:
                log.warning("the history isn't tidied: %s", error)
        self._is_open = False


def open_history(path: Path, clock: HistoryClock = time.time) -> History:
    """Open the history file; fall back to a history in memory instead of raising an error.

    Readable conversations are available in either case. `notice` says if it is in memory only.

    Args:
        path: Its file.
        clock: Seconds since 1970.
    """
    try:
        return History(path, clock)
    except StorageError as error:
        failure = error
    except Exception:  # the window must start, whatever a changed file holds
        log.warning("the history can't be opened", exc_info=True)
        failure = StorageError(f"{path} can't be used.", "The log says why.")
    log.warning("the history is kept in memory: %s", failure)
    notice = f"{failure.message} What you write today won't be remembered. {failure.hint}"
    return History(path, clock, database=open_in_memory(MIGRATIONS, path, notice))
