"""An SQLite file of ours: opened safely, with numbered migrations and errors that help."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medusa_core.errors import StorageError
from medusa_core.files.database_faults import as_storage_error

Migration = str | Callable[[sqlite3.Connection], None]
Row = tuple[Any, ...]

_BUSY_S = 5.0


class Database:
    """An open file, used from one thread.

    Attributes:
        path: The file; None for a database in memory.
        notice: What happened while it was opened, in a sentence for people; mostly empty.
    """

    def __init__(self, db: sqlite3.Connection, path: Path | None, notice: str = "") -> None:
        self._db = db
        self.path = path
        self.notice = notice

    def rows(self, sql: str, *parameters: object) -> list[Row]:
        """All rows of a query.

        Raises:
            StorageError: The file can't be read.
        """
        with self._told():
            return self._db.execute(sql, parameters).fetchall()

    def row(self, sql: str, *parameters: object) -> Row | None:
        """The first row of a query; None without one.

        Raises:
            StorageError: The file can't be read.
        """
        with self._told():
            found: Row | None = self._db.execute(sql, parameters).fetchone()
            return found

    def each(self, sql: str, *parameters: object) -> Iterator[Row]:
        """Rows one by one, for those who stop early.

        Raises:
            StorageError: The file can't be read.
        """
        with self._told():
            yield from self._db.execute(sql, parameters)

    def write(self, sql: str, *parameters: object) -> int:
        """Run one statement; returns the number of the row it inserted, if it did.

        Raises:
            StorageError: The file can't be written.
        """
        with self._told():
            return self._db.execute(sql, parameters).lastrowid or 0

    def write_many(self, sql: str, rows: Sequence[Row]) -> None:
        """Run one statement for each of several rows.

        Raises:
            StorageError: The file can't be written.
        """
        with self._told():
            self._db.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is kept, or nothing of it.

        Raises:
            StorageError: It can't be written; nothing was.
        """
        self.write("BEGIN IMMEDIATE")
        try:
            yield
            self.write("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.rollback()
            raise

    def checkpoint(self, *, truncates: bool = False) -> None:
        """Move what was written from the log into the file.

        Args:
            truncates: Wait for readers, and leave no byte in the log.

        Raises:
            StorageError: The file can't be written.
        """
        self.rows(f"PRAGMA wal_checkpoint({'TRUNCATE' if truncates else 'PASSIVE'})")

    def close(self) -> None:
        """Close the file; may be called again."""
        self._db.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise as_storage_error(error, self.path) from error


def open_database(
    path: Path, migrations: Sequence[Migration], *, checkpoints_itself: bool = True
) -> Database:
    """Open or make a file.

    Args:
        path: The file; its folder is made too.
        migrations: SQL scripts or functions; number n makes version n + 1 of version n.
        checkpoints_itself: Any commit may move the log into the file; else `checkpoint` does.

    Raises:
        StorageError: It can't be opened, or a newer version made it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = connect(str(path))
        try:
            if not checkpoints_itself:
                db.execute("PRAGMA wal_autocheckpoint = 0")
            _migrate(db, migrations, path)
        except BaseException:
            db.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise as_storage_error(error, path) from error
    return Database(db, path)


def connect(place: str) -> sqlite3.Connection:
    """A connection that keeps what it promised, and waits for others that write.

    Raises:
        sqlite3.Error: The file can't be opened.
    """
    db = sqlite3.connect(place, timeout=_BUSY_S, isolation_level=None)
    try:
        # One damaged letter mustn't cost the rest of a text.
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
    except BaseException:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection, migrations: Sequence[Migration], path: Path) -> None:
    version = version_of(db)
    if version > len(migrations):
        raise StorageError(
            f"{path} was made by a newer version of Medusa Chat.",
            "Update Medusa Chat; nothing in the file was changed.",
            version=version,
        )
    for number in range(version, len(migrations)):
        run_migration(db, migrations[number], number + 1)


def version_of(db: sqlite3.Connection) -> int:
    """How many migrations made this file."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def run_migration(db: sqlite3.Connection, migration: Migration, version: int) -> None:
    """Run one migration as one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        if isinstance(migration, str):
            for statement in _statements(migration):
                db.execute(statement)
        else:
            migration(db)
        db.execute(f"PRAGMA user_version = {version}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.rollback()
        raise


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), "a migration ends in the middle of a statement"
