"""An SQLite file of ours: opened safely, with numbered migrations and errors that help."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from medusa_core.errors import RequestError, StorageError
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

# Small files are looked through at each start; larger ones if the last run ended without closing.
_SMALL_BYTES = 16 << 20
# Another program may be salvaging the file.
_PREPARING_S = 60.0
# Two programs that start at once let each other pass.
_PASSING_S = 0.5


class Database:
    """An open file, used from one thread; other programs may use it, too.

    Attributes:
        path: The file; None for a database in memory.
        notice: What happened while it was opened, in a sentence for people; mostly empty.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path | None,
        notice: str = "",
        lock: SharedLock | None = None,
    ) -> None:
        """Use a connection.

        Args:
            db: The connection.
            path: Its file; None for a database in memory.
            notice: As above.
            lock: Held for as long as it is open.
        """
        self._db = db
        self.path = path
        self.notice = notice
        self._lock = lock
        self._seen = self._data_version()

    def rows(self, sql: str, *parameters: object) -> list[SqlRow]:
        """All rows of a query.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            return self._db.execute(sql, parameters).fetchall()

    def row(self, sql: str, *parameters: object) -> SqlRow | None:
        """The first row of a query; None without one.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            found: SqlRow | None = self._db.execute(sql, parameters).fetchone()
            return found

    def each(self, sql: str, *parameters: object) -> Iterator[SqlRow]:
        """Rows one by one, for those who stop early.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            yield from self._db.execute(sql, parameters)

    def write(self, sql: str, *parameters: object) -> int:
        """Run one statement; returns the number of the row it inserted, if it did.

        Raises:
            RequestError: It contradicts what is there, such as a name that comes twice.
            StorageError: The file can't be written.
        """
        with self._reporting():
            return self._db.execute(sql, parameters).lastrowid or 0

    def write_many(self, sql: str, rows: Sequence[SqlRow]) -> None:
        """Run one statement for each of several rows, inside of a transaction.

        Raises:
            StorageError: The file can't be written.
        """
        with self._reporting():
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

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one moment, whatever others write meanwhile.

        Raises:
            StorageError: The file can't be read.
        """
        self.write("BEGIN")
        try:
            yield
        finally:
            self._db.rollback()

    def changed_elsewhere(self) -> bool:
        """Whether somebody else has written since it was opened, or since this was called last.

        Raises:
            StorageError: The file can't be read.
        """
        with self._reporting():
            before, self._seen = self._seen, self._data_version()
        return self._seen != before

    def checkpoint(self, *, truncates: bool = False) -> None:
        """Move what was written from the log into the file.

        Args:
            truncates: Wait for readers, and leave no byte in the log.

        Raises:
            StorageError: The file can't be written.
        """
        # Both hold off writers: SQLite before 3.51.3 may lose what is committed meanwhile.
        kind = "TRUNCATE" if truncates else "FULL"
        found = self.row(f"PRAGMA wal_checkpoint({kind})")
        if truncates and found is not None and found[0] == 1:
            log.warning("another program reads %s: its log is emptied when that ends", self.path)

    def back_up(self, age_s: float = 0.0) -> None:
        """Renew the backup beside the file, if something was written since it was made.

        What was written is kept without it: where it can't be made, the log says why.

        Args:
            age_s: A backup that is younger stays.
        """
        if self.path is None:
            return
        try:
            if is_due(self.path, age_s):
                self.checkpoint()  # the file is older than its backup then
                back_up(self._db, self.path, backup_of(self.path))
        except StorageError as error:
            log.warning("no backup of %s: %s", self.path, error)
        except (*FAULTS, OSError) as error:
            if is_damage(error):
                self._mark_damaged()
            log.warning("no backup of %s: %s", self.path, error)

    def close(self) -> None:
        """Close the file; may be called again."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def _data_version(self) -> int:
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Convert SQLite's errors; a damaged file is salvaged when it is opened next."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise RequestError(
                f"This can't be written: {error}.", "It is there already."
            ) from error
        except FAULTS as error:
            if is_damage(error):
                self._mark_damaged()
            raise as_storage_error(error, self.path) from error

    def _mark_damaged(self) -> None:
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
) -> Database:
    """Open or make a file; a damaged one is set aside, and what can be read of it is kept.

    Several programs may have it open at once. What replaces or migrates the file is done while
    nobody else has it open.

    Args:
        path: The file; its folder is made too.
        migrations: SQL scripts or functions; number n makes version n + 1 of version n.
        mend: Puts right what the tables of a salvaged file say of each other.
        checkpoints_itself: Any commit may move the log into the file; else `checkpoint` does.
        busy_s: How long to wait for another program that writes.
        first: Done before it is opened, if nobody else has it open.

    Returns:
        The database, which can be written; its `notice` says what happened to it.

    Raises:
        StorageError: It can't be opened or written, or a newer version made it.
    """

    def prepare() -> str:
        notice = _prepare(path, migrations, mend, busy_s)
        if first is not None:
            with closing(Database(connect(path, busy_s), path)) as alone:
                first(alone)
        return notice

    try:
        make_own_folder(path.parent)
        lock = SharedLock(_lock_of(path))
        try:
            notice = _share_prepared(lock, path, prepare)
            db = _connect_to_write(path, len(migrations), busy_s)
        except BaseException:
            lock.close()
            raise
        if not checkpoints_itself:
            db.execute("PRAGMA wal_autocheckpoint = 0")
        return Database(db, path, notice, lock)
    except (*FAULTS, OSError) as error:
        raise as_storage_error(error, path) from error


def use_alone(path: Path, work: DatabaseWork) -> bool:
    """Do something with a file that nobody has open; returns whether that is so.

    Raises:
        StorageError: It can't be opened, or the work fails.
    """
    try:
        with closing(SharedLock(_lock_of(path))) as lock:
            if not lock.hold_alone() or not _is_prepared(path):
                return False
            with closing(Database(connect(path), path)) as database:
                work(database)
            return True
    except (*FAULTS, OSError) as error:
        raise as_storage_error(error, path) from error


def open_in_memory(
    migrations: Sequence[Migration], path: Path | None = None, notice: str = ""
) -> Database:
    """A database that is forgotten at the end, where a file can't be used.

    Args:
        migrations: As for a file.
        path: A file whose content it begins with, if that can be read.
        notice: What to tell about it.
    """
    db = sqlite3.connect(":memory:", isolation_level=None)
    configure(db)
    if path is not None:
        load_into_memory(path, db, len(migrations))
    migrate(db, migrations, len(migrations))
    return Database(db, None, notice)


def _lock_of(path: Path) -> Path:
    return beside(path, ".lock")


def _share_prepared(lock: SharedLock, path: Path, prepare: Callable[[], str]) -> str:
    """Share the lock of a file that can be opened; returns what was done to the file.

    Raises:
        sqlite3.Error: It can't be prepared.
        StorageError: Another program has it open, and it is damaged.
    """
    notice = ""
    for wait_s in (0.0, _PASSING_S):
        if lock.hold_alone(wait_s):
            notice = prepare() or notice
            lock.release()
        lock.share(_PREPARING_S)
        if _is_prepared(path):
            return notice
        lock.release()  # who prepared it was killed, or it has failed since
    raise _in_use(path)


def _in_use(path: Path) -> StorageError:
    return StorageError(
        f"{path} has to be repaired or updated, and another program is using it.",
        "Close the other windows and terminals of Medusa Chat, then try again.",
    )


def _is_prepared(path: Path) -> bool:
    """Whether a file is in place, and nobody has found it damaged."""
    return path.exists() and path.stat().st_size > 0 and not marker_of(path).exists()


def _prepare(path: Path, migrations: Sequence[Migration], mend: Mend, busy_s: float) -> str:
    """Bring a file that nobody has open into a state to be opened; returns what was done to it.

    Raises:
        sqlite3.Error: That can't be done.
        StorageError: A newer version made it.
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
    """Look whether all is well, and migrate.

    Raises:
        sqlite3.Error: It can't be used.
    """
    looks = path.stat().st_size <= _SMALL_BYTES or was_left_open(path)
    if not _is_prepared(path):
        raise damage("it couldn't be read before")
    with closing(connect(path, busy_s)) as db:
        if looks:
            _look_through(db)
        _refuse_newer(db, len(migrations), path)
        _migrate(db, migrations, path)


def _connect_to_write(path: Path, version: int, busy_s: float) -> sqlite3.Connection:
    """A connection to a file of this version.

    Raises:
        sqlite3.Error: It can't be written.
        StorageError: Another program made it another version.
    """
    db = connect(path, busy_s)
    try:
        _refuse_newer(db, version, path)
        if version_of(db) < version:
            raise _in_use(path)
        # A file that can't be written shows now, not when there is something to lose.
        db.execute("BEGIN IMMEDIATE")
        db.rollback()
    except BaseException:
        db.close()
        raise
    return db


def _look_through(db: sqlite3.Connection) -> None:
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damage(str(found))


def _refuse_newer(db: sqlite3.Connection, newest: int, path: Path) -> None:
    version = version_of(db)
    if version > newest:
        raise StorageError(
            f"{path} was made by a newer version of Medusa Chat.",
            "Update Medusa Chat; nothing in the file was changed.",
            version=version,
        )


def _migrate(db: sqlite3.Connection, migrations: Sequence[Migration], path: Path) -> None:
    version = version_of(db)
    if 0 < version < len(migrations):
        back_up(db, path, beside(path, f".backup-{version}"))
    migrate(db, migrations, len(migrations))
