"""Salvages the rows of a damaged SQLite file, and adds missing ones from its backup.

A damaged page costs only the rows on it: rows that SQLite can't reach are read from their pages.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medusa_core.system.storage.database_faults import FAULTS
from medusa_core.system.storage.database_pages import PagesOf, SqlValue
from medusa_core.system.storage.database_schema import (
    Mend,
    Migration,
    connect,
    migrate,
)

log = logging.getLogger(__name__)

_KINDS = {"INTEGER": int, "REAL": (float, int), "TEXT": str, "BLOB": bytes}
_TEXTS = "_content"  # suffix of an FTS5 index's table of texts
_MOST_INDEXED = 1_000_000
_VERSION_AT = 60  # in the first page

_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Result of salvaging a file.

    Attributes:
        num_read: Rows from the damaged file.
        num_from_backup: Rows from its backup alone.
    """

    num_read: int
    num_from_backup: int = 0


def salvage(
    wreck: Path,
    made: Path,
    migrations: Sequence[Migration],
    mend: Mend,
    backup: Path | None = None,
) -> Salvaged:
    """Fill a new file with the readable rows of a damaged one.

    Args:
        wreck: Copy of the damaged file; SQLite may change it.
        made: Path of the new file.
        migrations: Migrations that create its tables.
        mend: Repairs references between tables.
        backup: A sound backup of the newest version; None without one.

    Raises:
        sqlite3.Error: The new file can't be written.
        OSError: The copy can't be read.
    """
    pages = PagesOf(wreck, wreck.with_name(wreck.name + "-wal"))
    with closing(connect(made)) as new:
        migrate(new, migrations, _version(pages, len(migrations)))
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN")
        num_read = _fill(new, wreck, pages)
        new.execute("COMMIT")
        migrate(new, migrations, len(migrations))
        if backup is not None:
            new.execute("ATTACH ? AS backup", (str(backup),))
        new.execute("BEGIN")
        num_from_backup = mend(new, backup is not None)
        for table, row, *_ in new.execute("PRAGMA main.foreign_key_check").fetchall():
            new.execute(f"DELETE FROM main.{table} WHERE rowid = ?", (row,))
        new.execute("COMMIT")
    return Salvaged(num_read, num_from_backup)


def _version(pages: PagesOf, newest: int) -> int:
    """Read the version of a damaged file; return the newest if its first page is damaged."""
    first = pages[1]
    if not first.startswith(b"SQLite format 3\0"):
        return newest
    (version,) = struct.unpack_from(">I", first, _VERSION_AT)
    return version if 0 < version <= newest else newest


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, without the column that is the rowid.

    Attributes:
        name: Name of the table.
        columns: Names of its columns, with the Python types of their values.
        key: Index of the rowid's column among all columns; None if it has none.
    """

    name: str
    columns: dict[str, Any]
    key: int | None

    @property
    def select(self) -> str:
        """SQL that selects rowid and values."""
        return f"SELECT {', '.join(['rowid', *self.columns])} FROM {self.name}"

    @property
    def is_index(self) -> bool:
        """Whether it holds the texts of a search index; its columns accept any type."""
        return self.name.endswith(_TEXTS)

    def insert(self, new: sqlite3.Connection, number: int, values: Sequence[SqlValue]) -> None:
        """Insert a row if its types match this table's and its rowid is free."""
        kinds = list(self.columns.values())[: len(values)]
        if len(values) > len(self.columns) or not all(
            value is None or isinstance(value, kind)
            for value, kind in zip(values, kinds, strict=True)
        ):
            return
        # A row that was written before a column was added gets the column's default.
        names = ", ".join(["rowid", *list(self.columns)[: len(values)]])
        places = ", ".join("?" * (len(values) + 1))
        with suppress(sqlite3.IntegrityError, sqlite3.DataError, OverflowError):
            new.execute(
                f"INSERT OR IGNORE INTO {self.name} ({names}) VALUES ({places})", (number, *values)
            )

    def insert_leaf_row(self, new: sqlite3.Connection, number: int, values: list[SqlValue]) -> None:
        """Insert a row from a leaf, where the column of the rowid is NULL."""
        if self.key is not None and values[self.key : self.key + 1] == [None]:
            values = values[: self.key] + values[self.key + 1 :]
        elif self.key is not None:
            return
        self.insert(new, number, values)


def _tables(db: sqlite3.Connection) -> list[_Table]:
    """List ordinary tables, and the tables of texts of search indexes, which are rebuilt."""
    found = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in found if str(sql).upper().startswith("CREATE VIRTUAL")]
    shadows = tuple(f"{name}_" for name in virtual)
    texts = {f"{name}{_TEXTS}" for name in virtual}
    tables = []
    for name, _ in found:
        if name in texts or not (name in virtual or name.startswith((*shadows, "sqlite_"))):
            columns = db.execute(f"PRAGMA table_info({name})").fetchall()
            keys = [place for place, _, kind, *_, is_key in columns if is_key and kind == "INTEGER"]
            kinds = {
                column: _KINDS.get(kind, object)
                for place, column, kind, *_ in columns
                if place not in keys
            }
            tables.append(_Table(name, kinds, keys[0] if keys else None))
    return tables


def _fill(new: sqlite3.Connection, wreck: Path, pages: PagesOf) -> int:
    """Copy all readable rows; return their number."""
    before = new.total_changes
    tables = _tables(new)
    torn = []
    for table in tables:
        rows = _RowsOf(wreck, table)
        for number, *values in rows:
            table.insert(new, number, values)
        if not rows.are_whole:
            log.warning("%s is damaged", table.name)
            torn.append(table)
    for number, values in pages.rows() if torn else ():
        for table in torn:
            if not table.is_index:
                table.insert_leaf_row(new, number, values)
    for index in (table for table in torn if table.is_index):
        tops = [
            new.execute(f"SELECT coalesce(max(rowid), 0) FROM {table.name}").fetchone()[0]
            for table in tables
        ]
        for number, *values in _rows_by_number(wreck, index, min(max(tops), _MOST_INDEXED)):
            index.insert(new, number, values)
    return new.total_changes - before


class _RowsOf:
    """Rows of a table in order, up to the first damage.

    Attributes:
        are_whole: Whether no damage was found.
    """

    def __init__(self, wreck: Path, table: _Table) -> None:
        self._wreck, self._table = wreck, table
        self.are_whole = True

    def __iter__(self) -> Iterator[_Row]:
        try:
            with closing(_open(self._wreck)) as db:
                yield from db.execute(f"{self._table.select} NOT INDEXED ORDER BY rowid")
        except FAULTS:
            self.are_whole = False


def _rows_by_number(wreck: Path, table: _Table, top: int) -> Iterator[_Row]:
    """Yield readable rows by rowid, up to the largest one of other tables."""
    with suppress(*FAULTS), closing(_open(wreck)) as db:
        for number in range(1, top + 1):
            with suppress(*FAULTS):
                yield from db.execute(f"{table.select} WHERE rowid = ?", (number,)).fetchall()


def _open(wreck: Path) -> sqlite3.Connection:
    """Connect to a damaged file.

    Raises:
        sqlite3.Error: Nothing of it can be read.
    """
    db = sqlite3.connect(wreck, isolation_level=None)
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    db.execute("PRAGMA writable_schema = ON")  # opens truncated files, too
    return db
