"""Configured SQLite connections, and migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

Migration = str | Callable[[sqlite3.Connection], None]
Mend = Callable[[sqlite3.Connection, bool], int]
"""Repairs references between the tables of a salvaged file. Its second argument says whether a
backup is attached as `backup`; it returns the number of rows that it copied from there."""


def nothing_to_mend(_db: sqlite3.Connection, _has_backup: bool) -> int:
    """Do nothing: a `mend` for tables without references and backups."""
    return 0


def connect(path: Path, busy_s: float = 5.0, *, serves_threads: bool = False) -> sqlite3.Connection:
    """Connect to a file; the connection waits for other writers.

    Args:
        path: The file.
        busy_s: Longest wait for another writer.
        serves_threads: Allow calls from several threads, which the caller serializes.

    Raises:
        sqlite3.Error: The file can't be opened.
    """
    db = sqlite3.connect(
        path, timeout=busy_s, isolation_level=None, check_same_thread=not serves_threads
    )
    try:
        db.execute("PRAGMA journal_mode = WAL")
        configure(db)
    except BaseException:
        db.close()
        raise
    return db


def configure(db: sqlite3.Connection) -> None:
    """Set what is common to all connections."""
    # Damaged characters are replaced; the rest of a text stays readable.
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA secure_delete = ON")


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a database: the number of its migrations."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(db: sqlite3.Connection, migrations: Sequence[Migration], version: int) -> None:
    """Migrate a database up to a version.

    Raises:
        sqlite3.Error: It can't be written.
    """
    for number in range(version_of(db), version):
        run_migration(db, migrations[number], number + 1)


def run_migration(db: sqlite3.Connection, migration: Migration, version: int) -> None:
    """Run a migration in one transaction.

    Args:
        version: Version after it.
    """
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
    """Split a script into statements, because `executescript` commits the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), "a migration ends in the middle of a statement"
