"""What can still be read of a damaged SQLite file, row by row.

A page of 4 KB that is lost costs the rows on it, and no more: the schema is put back from a new
file of the same version, and where the inner pages of a table are lost, its leaves are found by
their kind.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from medusa_core.system.storage.database_faults import FAULTS
from medusa_core.system.storage.database_leaves import (
    PAGE,
    WreckRow,
    open_wreck,
    rows_by_leaf,
    write_page,
)
from medusa_core.system.storage.database_schema import (
    Mend,
    Migration,
    connect,
    run_migration,
    version_of,
)

log = logging.getLogger(__name__)

_MAGIC = b"SQLite format 3\0"
_TOP_ROW = 1 << 62
_NEXT = "WHERE rowid > ? ORDER BY rowid LIMIT 1"
_TEXTS = "_content"  # ending of a table of FTS5


def salvage(wreck: Path, made: Path, migrations: Sequence[Migration], mend: Mend) -> int:
    """Fill a new file with what can be read of a damaged one.

    Args:
        wreck: A copy of the damaged file, which is changed.
        made: The new file.
        migrations: What makes its tables.
        mend: Puts right what the tables say of each other.

    Returns:
        How many rows were read.

    Raises:
        sqlite3.Error: The new file can't be written.
    """
    _pad(wreck)
    version = _readable_version(wreck, len(migrations))
    num_rows = _fill(made, wreck, migrations, version, mend)
    fresh = wreck.with_name("fresh.db")
    # Without the first page nothing says which version it was.
    for guess in range(len(migrations), 0, -1):
        if num_rows:
            break
        fresh.unlink(missing_ok=True)
        with closing(connect(fresh)) as new:
            _migrate(new, migrations, 0, guess)
        _put_schema_back(wreck, fresh)
        num_rows = _fill(made, wreck, migrations, guess, mend)
    return num_rows


def _fill(
    made: Path, wreck: Path, migrations: Sequence[Migration], version: int, mend: Mend
) -> int:
    """Make the tables of a version, copy what can be read, and bring them to the newest one."""
    made.unlink(missing_ok=True)
    num_rows = 0
    with closing(connect(made)) as new:
        _migrate(new, migrations, 0, version)
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN")
        for table, columns in _tables(new):
            num_rows += _copy_table(new, wreck, table, columns)
        new.execute("COMMIT")
        _migrate(new, migrations, version, len(migrations))
        new.execute("BEGIN")
        mend(new)
        for table, row, *_ in new.execute("PRAGMA foreign_key_check").fetchall():
            new.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        new.execute("COMMIT")
    return num_rows


def _migrate(
    db: sqlite3.Connection, migrations: Sequence[Migration], version: int, wanted: int
) -> None:
    for number in range(version, wanted):
        run_migration(db, migrations[number], number + 1)


def _tables(db: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    """Ordinary tables with their columns, and the texts of search indexes, which are made anew."""
    found = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in found if str(sql).upper().startswith("CREATE VIRTUAL")]
    shadows = tuple(f"{name}_" for name in virtual)
    texts = {f"{name}{_TEXTS}" for name in virtual}
    tables = []
    for name, _ in found:
        if name in texts or not (name in virtual or name.startswith((*shadows, "sqlite_"))):
            columns = db.execute(f"PRAGMA table_info({name})").fetchall()
            tables.append((name, [column[1] for column in columns]))
    return tables


def _copy_table(new: sqlite3.Connection, wreck: Path, table: str, columns: list[str]) -> int:
    names = ", ".join(columns)
    values = ", ".join("?" for _ in columns)
    sql = f"INSERT OR IGNORE INTO {table} (rowid, {names}) VALUES (?, {values})"
    num_rows = num_odd = 0
    for row in _Reader(wreck, table, names).rows():
        try:
            num_rows += new.execute(sql, row).rowcount
        except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError):
            num_odd += 1  # of another table, in most cases
    log.info("%s: %d rows read, %d of no sense", table, num_rows, num_odd)
    return num_rows


class _Reader:
    """Reads one table of a damaged file."""

    def __init__(self, wreck: Path, table: str, columns: str) -> None:
        self._wreck = wreck
        self._sql = f"SELECT rowid, {columns} FROM {table} NOT INDEXED"
        self._table = table
        self._is_whole = True

    def rows(self) -> Iterator[WreckRow]:
        """All rows that can be read; some may come twice."""
        try:
            with closing(open_wreck(self._wreck)) as db:
                yield from self._by_number(db)
        except FAULTS:
            self._is_whole = False
        # FTS5's tables take whatever they are given: nothing says whose leaf it is.
        if not self._is_whole and not self._table.endswith(_TEXTS):
            yield from rows_by_leaf(self._wreck, self._table, self._sql)

    def _by_number(self, db: sqlite3.Connection) -> Iterator[WreckRow]:
        """Rows in order; where a page can't be read, from the next row that can."""
        at: int | None = -_TOP_ROW
        while at is not None:
            try:
                for row in db.execute(f"{self._sql} WHERE rowid > ? ORDER BY rowid", (at,)):
                    at = max(at, int(row[0]))
                    yield row
                return
            except FAULTS:
                self._is_whole = False
                at = yield from self._up_to_damage(db, at)

    def _up_to_damage(
        self, db: sqlite3.Connection, at: int
    ) -> Generator[WreckRow, None, int | None]:
        """Rows one by one: Python reads one ahead, and doesn't give the last good one.

        Returns:
            The number behind which rows can be read again; None where there are none.
        """
        try:
            while row := db.execute(f"{self._sql} {_NEXT}", (at,)).fetchone():
                yield row
                if row[0] <= at:  # what is torn leads back: leaves tell the rest
                    return None
                at = int(row[0])
        except FAULTS:
            log.warning("%s is damaged behind row %d", self._table, at)
            return self._next_readable(db, at)
        return None

    def _next_readable(self, db: sqlite3.Connection, bad: int) -> int | None:
        """The number behind which rows can be read again; None where there are none."""

        def is_readable(at: int) -> bool:
            try:
                db.execute(f"{self._sql} {_NEXT}", (at,)).fetchone()
            except FAULTS:
                return False
            return True

        bad, width = max(bad, 0), 1
        while not is_readable(bad + width):
            width *= 2
            if bad + width > _TOP_ROW:
                return None
        good = bad + width
        while good - bad > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if is_readable(middle) else (good, middle)
        return good


def _readable_version(wreck: Path, newest: int) -> int:
    """The version of a damaged file, with its log played into it; the newest if it can't be told.

    Tables of a file without its first page are looked for where those of a new one are.
    """
    try:
        with closing(open_wreck(wreck)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            db.execute("PRAGMA journal_mode = DELETE").fetchall()
            version = version_of(db)
    except FAULTS:
        return newest
    return version if 0 < version <= newest else newest


def _put_schema_back(wreck: Path, fresh: Path) -> None:
    """Take the pages that describe the tables from a new file of the same version."""
    with closing(sqlite3.connect(fresh)) as db:
        roots = {row[0] for row in db.execute("SELECT rootpage FROM sqlite_schema")}
    raw = fresh.read_bytes()
    num_pages = max(1, wreck.stat().st_size // PAGE)
    for page in range(1, len(raw) // PAGE + 1):
        if page == 1 or (page not in roots and page <= num_pages):
            write_page(wreck, page, raw[(page - 1) * PAGE : page * PAGE])
    _pad(wreck)


def _pad(wreck: Path) -> None:
    """Make a file say how long it is, in whole pages and without free ones."""
    with wreck.open("r+b") as file:
        num_bytes = -(-wreck.stat().st_size // PAGE) * PAGE
        file.truncate(num_bytes)
        if file.read(len(_MAGIC)) == _MAGIC:
            file.seek(24)
            changes = file.read(4)
            file.seek(28)
            file.write(struct.pack(">III", num_bytes // PAGE, 0, 0))
            file.seek(92)
            file.write(changes)
