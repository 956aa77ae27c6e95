"""A lock that many programs hold together, or one alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path


class SharedLock:
    """SQLite's own lock of an empty file: it is the same on all systems, and ends with its program.

    Nothing else may open the file: a process that closes it loses its locks there.
    """

    def __init__(self, path: Path) -> None:
        """Open it; nothing is locked yet.

        Args:
            path: The file, which is made when it is locked first.

        Raises:
            sqlite3.Error: It can't be opened.
        """
        self._db = sqlite3.connect(path, isolation_level=None)

    def share(self, wait_s: float) -> None:
        """Hold it together with others.

        Args:
            wait_s: How long to wait for a program that holds it alone.

        Raises:
            sqlite3.Error: It is still held alone.
        """
        self._wait(wait_s)
        self._db.execute("BEGIN")
        try:
            self._db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            self._db.rollback()
            raise

    def hold_alone(self, wait_s: float = 0.0) -> bool:
        """Hold it alone; False where another program holds it.

        Args:
            wait_s: How long to wait for the others.

        Raises:
            sqlite3.Error: The file can't be locked at all.
        """
        self._wait(wait_s)
        try:
            self._db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def release(self) -> None:
        """Let others have it."""
        if self._db.in_transaction:
            self._db.rollback()

    def close(self) -> None:
        """Let others have it, for good; may be called again."""
        self._db.close()

    def _wait(self, wait_s: float) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {round(1000 * wait_s)}")
