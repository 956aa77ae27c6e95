"""All conversations of a user, in one file.

It is used from one thread. Each write is one short transaction, kept when the method returns.
"""

from __future__ import annotations

import time
from pathlib import Path

from medusa_core.files.database import open_database
from medusa_core.history.messages import Messages
from medusa_core.history.part import Clock
from medusa_core.history.schema import MIGRATIONS
from medusa_core.history.search import Search
from medusa_core.history.shelf import Shelf
from medusa_core.history.traces import Traces
from medusa_core.history.trash import Trash


class History(Shelf, Messages, Trash, Search, Traces):
    """The history.

    Attributes:
        notice: What happened when it was opened, in a sentence for people; mostly empty.
    """

    def __init__(self, path: Path, clock: Clock = time.time) -> None:
        """Open or make it.

        Args:
            path: Its file.
            clock: Seconds since 1970.

        Raises:
            StorageError: It can't be opened, or a newer version made it.
        """
        database = open_database(path, MIGRATIONS, checkpoints_itself=False)
        super().__init__(database, clock)
        self._listeners = []
        self.notice = database.notice
        self.cut_unfinished()

    def checkpoint(self) -> None:
        """Move what was written from the log into its file: for a moment without other work.

        Raises:
            StorageError: It can't be written.
        """
        self._database.checkpoint()

    def close(self) -> None:
        """Close the file; may be called again."""
        self._database.close()
