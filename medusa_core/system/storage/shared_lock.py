"""A lock between processes, shared or exclusive."""

from __future__ import annotations

import sqlite3
from pathlib import Path


class SharedLock:
    """SQLite's lock of an empty file, which works on all systems and ends with its process.

    No other code may open the file: on POSIX systems, closing any handle to a file drops all locks
    of the process on it.
    """

    def __init__(self, path: Path, *, serves_threads: bool = False) -> None:
        """Open the file without locking it.

        Args:
            path: The file, which is created when it is first locked.
            serves_threads: See `connect`.

        Raises:
            sqlite3.Error: It can't be opened.
        """
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=not serves_threads)

    def share(self, wait_s: float) -> None:
        """Acquire the lock shared.

        Args:
            wait_s: Longest wait for a process that holds it exclusively.

        Raises:
            sqlite3.Error: It is still held exclusively.
        """
        self._wait(wait_s)
        self._db.execute("BEGIN")
        try:
            self._db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            self._db.rollback()
            raise

    def acquire_exclusive(self, wait_s: float = 0.0) -> bool:
        """Acquire the lock exclusively; return False if another process holds it.

        Args:
            wait_s: Longest wait for other processes.

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
        """Release the lock."""
        if self._db.in_transaction:
            self._db.rollback()

    def close(self) -> None:
        """Release the lock and close the file; a second call does nothing."""
        self._db.close()

    def _wait(self, wait_s: float) -> None:
        """Set how long the next attempt waits."""
        self._db.execute(f"PRAGMA busy_timeout = {round(1000 * wait_s)}")
