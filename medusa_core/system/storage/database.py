"""An SQLite database of this program: safe opening, numbered migrations, helpful errors."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from medusa_core.errors import RequestError, StorageError
from medusa_core.i18n import tr
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.storage.database_backup import back_up, backup_of, beside, is_due
from medusa_core.system.storage.database_copy import (
    create,
    finish_replacement,
    load_into_memory,
    marker_of,
    replace_damaged,
    was_left_open,
)
from medusa_core.system.storage.database_faults import (
    FAULTS,
    as_storage_error,
    damage,
    is_damage,
)
from medusa_core.system.storage.database_schema import (
    Mend,
    Migration,
    configure,
    connect,
    migrate,
    nothing_to_mend,
    version_of,
)
from medusa_core.system.storage.shared_lock import SharedLock

__all__ = ["Database", "Migration", "open_database", "open_in_memory"]

log = logging.getLogger(__name__)

SqlRow = tuple[Any, ...]

# Smaller files are checked at each start, larger ones only if the last run didn't close them.
_SMALL_BYTES = 16 << 20
# For another program that may be salvaging the file.
_PREPARING_S = 60.0
# For another program that starts at the same time.
_STARTING_S = 0.5


class Database:
    """An open database, used by one thread at a time; other programs may use the file, too.

    Attributes:
        path: The file; None for a database in memory.
        notice: What was repaired when it was opened, for people; mostly empty.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path | None,
        notice: str = "",
        lock: SharedLock | None = None,
    ) -> None:
        """Wrap a connection.

        Args:
            path: Its file; None for a database in memory.
            notice: See the class.
            lock: Shared lock, released by `close`.
        """
        self._db = db
        self.path = path
        self.notice = notice
        self._lock = lock
        self._seen = self._data_version()

    def rows(self, sql: str, *parameters: object) -> list[SqlRow]:
        """Return all rows of a query.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            return self._db.execute(sql, parameters).fetchall()

    def row(self, sql: str, *parameters: object) -> SqlRow | None:
        """Return the first row of a query; None if there is none.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            found: SqlRow | None = self._db.execute(sql, parameters).fetchone()
            return found

    def each(self, sql: str, *parameters: object) -> Iterator[SqlRow]:
        """Yield rows one by one, for callers that stop early.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            yield from self._db.execute(sql, parameters)

    def write(self, sql: str, *parameters: object) -> int:
        """Run one statement and return the id of an inserted row.

        Raises:
            RequestError: It violates a constraint, such as a unique name.
            StorageError: The file can't be written.
        """
        with self._reporting():
            return self._db.execute(sql, parameters).lastrowid or 0

    def write_many(self, sql: str, rows: Sequence[SqlRow]) -> None:
        """Run one statement for each of several rows, inside a transaction.

        Raises:
            StorageError: The file can't be written.
        """
        with self._reporting():
            self._db.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that is written inside, or nothing.

        Raises:
            StorageError: It can't be written, and nothing was.
        """
        self.write("BEGIN IMMEDIATE")
        try:
            yield
            self.write("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.rollback()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read from one consistent snapshot inside.

        Raises:
            StorageError: The file can't be read.
        """
        self.write("BEGIN")
        try:
            yield
        finally:
            self._db.rollback()

    def changed_elsewhere(self) -> bool:
        """Whether another connection has written since the last call, or since opening.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            before, self._seen = self._seen, self._data_version()
        return self._seen != before

    def checkpoint(self, *, truncates: bool = False) -> None:
        """Move the content of the write-ahead log into the file.

        Args:
            truncates: Wait for readers, and empty the log.

        Raises:
            StorageError: The file can't be written.
        """
        # Both modes block writers: SQLite before 3.51.3 may lose concurrent commits.
        kind = "TRUNCATE" if truncates else "FULL"
        found = self.row(f"PRAGMA wal_checkpoint({kind})")
        if truncates and found is not None and found[0] == 1:
            log.warning("another program reads %s: its log is emptied when that ends", self.path)

    def back_up(self, age_s: float = 0.0) -> None:
        """Renew the backup of the file if something was written since; failures are only logged.

        Args:
            age_s: Keep a backup that is younger.
        """
        if self.path is None:
            return
        try:
            if is_due(self.path, age_s):
                self.checkpoint()  # now, so that the file's time precedes the backup's
                back_up(self._db, self.path, backup_of(self.path))
        except StorageError as error:
            log.warning("no backup of %s: %s", self.path, error)
        except (*FAULTS, OSError) as error:
            if is_damage(error):
                self._mark_damaged()
            log.warning("no backup of %s: %s", self.path, error)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def _data_version(self) -> int:
        """Return SQLite's counter of changes by other connections."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Convert SQLite's errors, and mark a damaged file to be salvaged at the next opening."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise RequestError(
                tr("This can't be written: {0}.", error), "It is there already."
            ) from error
        except FAULTS as error:
            if is_damage(error):
                self._mark_damaged()
            raise as_storage_error(error, self.path) from error

    def _mark_damaged(self) -> None:
        """Mark the file to be salvaged at the next opening."""
        if self.path is not None:
            with suppress(OSError):
                marker_of(self.path).touch()


DatabaseWork = Callable[[Database], None]


def open_database(
    path: Path,
    migrations: Sequence[Migration],
    *,
    mend: Mend = nothing_to_mend,
    checkpoints_itself: bool = True,
    busy_s: float = 5.0,
    first: DatabaseWork | None = None,
    serves_threads: bool = False,
) -> Database:
    """Open or create a file; a damaged one is renamed, and its readable rows are salvaged.

    Several programs may have it open at once. Only a program that has it open alone replaces or
    migrates the file.

    Args:
        path: The file; its folder is created, too.
        migrations: SQL scripts or functions; number n upgrades version n to n + 1.
        mend: Repairs references between the tables of a salvaged file.
        checkpoints_itself: Let SQLite checkpoint after commits; else only `checkpoint` does.
        busy_s: Longest wait for another program that writes.
        first: Work to do before opening, if no other program has it open.
        serves_threads: See `connect`.

    Returns:
        The writable database; its `notice` says what was repaired.

    Raises:
        StorageError: It can't be opened or written, or its version is newer than this program.
    """

    def prepare() -> str:
        """Prepare the file and run the first work on it."""
        notice = _prepare(path, migrations, mend, busy_s)
        if first is not None:
            with closing(Database(connect(path, busy_s), path)) as alone:
                first(alone)
        return notice

    try:
        make_own_folder(path.parent)
        lock = SharedLock(_lock_of(path), serves_threads=serves_threads)
        try:
            notice = _share_prepared(lock, path, prepare)
            db = _connect_to_write(path, len(migrations), busy_s, serves_threads)
        except BaseException:
            lock.close()
            raise
        if not checkpoints_itself:
            db.execute("PRAGMA wal_autocheckpoint = 0")
        return Database(db, path, notice, lock)
    except (*FAULTS, OSError) as error:
        raise as_storage_error(error, path) from error


def use_alone(path: Path, action: DatabaseWork) -> bool:
    """Work on a file unless another program has it open.

    Returns:
        Whether the work was done.

    Raises:
        StorageError: It can't be opened, or the work fails.
    """
    try:
        with closing(SharedLock(_lock_of(path))) as lock:
            if not lock.acquire_exclusive() or not _is_prepared(path):
                return False
            with closing(Database(connect(path), path)) as database:
                action(database)
            return True
    except (*FAULTS, OSError) as error:
        raise as_storage_error(error, path) from error


def open_in_memory(
    migrations: Sequence[Migration], path: Path | None = None, notice: str = ""
) -> Database:
    """Open a database in memory, in place of a file that can't be used.

    Args:
        migrations: See `open_database`.
        path: A file whose content is copied, if it can be read.
        notice: See `Database`.
    """
    db = sqlite3.connect(":memory:", isolation_level=None)
    configure(db)
    if path is not None:
        load_into_memory(path, db, len(migrations))
    migrate(db, migrations, len(migrations))
    return Database(db, None, notice)


def _lock_of(path: Path) -> Path:
    """Return the path of a database's lock."""
    return beside(path, ".lock")


def _share_prepared(lock: SharedLock, path: Path, prepare: Callable[[], str]) -> str:
    """Prepare a file if no other program has it open, acquire the shared lock, return the notice.

    Raises:
        sqlite3.Error: It can't be prepared.
        StorageError: It is damaged, and another program has it open.
    """
    notice = ""
    for wait_s in (0.0, _STARTING_S):
        if lock.acquire_exclusive(wait_s):
            notice = prepare() or notice
            lock.release()
        lock.share(_PREPARING_S)
        if _is_prepared(path):
            return notice
        lock.release()  # the program that prepared it was killed, or it was damaged since
    raise _in_use(path)


def _in_use(path: Path) -> StorageError:
    """Make the error for a file that another program uses."""
    return StorageError(
        tr("{0} has to be repaired or updated, and another program is using it.", path),
        "Close the other windows and terminals of Medusa Chat, then try again.",
    )


def _is_prepared(path: Path) -> bool:
    """Whether a file exists and isn't marked as damaged."""
    return path.exists() and path.stat().st_size > 0 and not marker_of(path).exists()


def _prepare(path: Path, migrations: Sequence[Migration], mend: Mend, busy_s: float) -> str:
    """Create, salvage or migrate a file that no other program has open; return the notice.

    Raises:
        sqlite3.Error: That fails.
        StorageError: Its version is newer than this program.
    """
    finish_replacement(path)
    if not path.exists():
        create(path, migrations)
    try:
        _check_and_migrate(path, migrations, busy_s)
    except FAULTS as error:
        if not is_damage(error):
            raise
        notice = replace_damaged(path, migrations, mend)
        _check_and_migrate(path, migrations, busy_s)
        return notice
    return ""


def _check_and_migrate(path: Path, migrations: Sequence[Migration], busy_s: float) -> None:
    """Check a file and migrate it.

    Raises:
        sqlite3.Error: It can't be used.
    """
    checks = path.stat().st_size <= _SMALL_BYTES or was_left_open(path)
    if not _is_prepared(path):
        raise damage("it couldn't be read before")
    with closing(connect(path, busy_s)) as db:
        if checks:
            _check(db)
        _refuse_newer(db, len(migrations), path)
        _migrate(db, migrations, path)


def _connect_to_write(
    path: Path, version: int, busy_s: float, serves_threads: bool
) -> sqlite3.Connection:
    """Connect to a file of a version.

    Raises:
        sqlite3.Error: It can't be written.
        StorageError: It has another version.
    """
    db = connect(path, busy_s, serves_threads=serves_threads)
    try:
        _refuse_newer(db, version, path)
        if version_of(db) < version:
            raise _in_use(path)
        # Detects a read-only file now, not when there is something to lose.
        db.execute("BEGIN IMMEDIATE")
        db.rollback()
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection) -> None:
    """Run SQLite's quick check."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damage(str(found))


def _refuse_newer(db: sqlite3.Connection, newest: int, path: Path) -> None:
    """Refuse a file of a newer version of this program."""
    version = version_of(db)
    if version > newest:
        raise StorageError(
            tr("{0} was made by a newer version of Medusa Chat.", path),
            "Update Medusa Chat; nothing in the file was changed.",
            version=version,
        )


def _migrate(db: sqlite3.Connection, migrations: Sequence[Migration], path: Path) -> None:
    """Back up a file before migrating it."""
    version = version_of(db)
    if 0 < version < len(migrations):
        back_up(db, path, beside(path, f".backup-{version}"))
    migrate(db, migrations, len(migrations))
