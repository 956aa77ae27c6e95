"""What the first program that opens the history does, and the last one that closes it."""

from __future__ import annotations

from medusa_core.chats.history.answers import Answers
from medusa_core.chats.history.part import HistoryClock
from medusa_core.chats.history.taking import Taking
from medusa_core.system.storage.database import Database


def tidy(database: Database, clock: HistoryClock, backup_age_s: float = 0.0) -> None:
    """End what a killed program was writing, and renew the backup.

    Args:
        database: The history, which nobody else has open: what isn't ended will never be.
        clock: Seconds since 1970.
        backup_age_s: A backup that is younger stays.

    Raises:
        StorageError: It can't be read or written.
    """
    Answers(database, clock).cut_unfinished()
    Taking(database, clock).forget_staged()
    database.back_up(backup_age_s)
