"""Reads rows of a table whose inner pages are lost, by attaching its leaf pages to a new root page.

SQLite reads them then, with the pages that long rows flow over into. A leaf doesn't say whose it
is: what comes may be rows of other tables, which a strict table refuses.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from medusa_core.system.storage.database_faults import FAULTS

PAGE = 4096
_LEAF, _INNER = 0x0D, 0x05
_LEAVES_AT_ONCE = 200

WreckRow = tuple[Any, ...]


def open_wreck(wreck: Path) -> sqlite3.Connection:
    """A connection to a damaged file.

    Raises:
        sqlite3.Error: Nothing of it can be read.
    """
    db = sqlite3.connect(wreck, isolation_level=None)
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # Opens files that are shorter than they say.
    db.execute("PRAGMA writable_schema = ON")
    return db


def write_page(path: Path, page: int, raw: bytes) -> None:
    """Put a page into a file."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(raw)


def rows_by_leaf(wreck: Path, table: str, sql: str) -> Iterator[WreckRow]:
    """Rows of all leaves of the file, as if they were the table's.

    Args:
        wreck: The file, which is as before afterwards.
        table: The table.
        sql: Selects from it, in any order.
    """
    raw = wreck.read_bytes()
    num_pages = len(raw) // PAGE
    root = _root_of(wreck, table)
    if not 1 < root <= num_pages:
        return
    leaves = [page for page in range(2, num_pages + 1) if raw[(page - 1) * PAGE] == _LEAF]
    hanger = _Hanger(wreck, root, raw, sql)
    try:
        for begin in range(0, len(leaves), _LEAVES_AT_ONCE):
            yield from hanger.rows(leaves[begin : begin + _LEAVES_AT_ONCE])
    finally:
        write_page(wreck, root, hanger.page(root))


def _root_of(wreck: Path, table: str) -> int:
    """A table's first page; 0 if that isn't known."""
    try:
        with closing(open_wreck(wreck)) as db:
            found = db.execute(
                "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
            ).fetchone()
    except FAULTS:
        return 0
    return found[0] if found is not None and isinstance(found[0], int) else 0


class _Hanger:
    """Hangs leaves under a root and reads them."""

    def __init__(self, wreck: Path, root: int, raw: bytes, sql: str) -> None:
        self._wreck, self._root, self._raw, self._sql = wreck, root, raw, sql

    def page(self, number: int) -> bytes:
        """A page as it was."""
        return self._raw[(number - 1) * PAGE : number * PAGE]

    def rows(self, leaves: Sequence[int]) -> list[WreckRow]:
        """Rows of some leaves; where one can't be read, of the others."""
        if len(leaves) == 1:
            # The root itself may be such a leaf: a page can't hang under itself.
            write_page(self._wreck, self._root, self.page(leaves[0]))
        elif self._root in leaves:
            others = [leaf for leaf in leaves if leaf != self._root]
            return self.rows([self._root]) + self.rows(others)
        else:
            write_page(self._wreck, self._root, _inner_page(leaves))
        found = []
        try:
            with closing(open_wreck(self._wreck)) as db:
                for row in db.execute(self._sql):
                    found.append(row)  # noqa: PERF402 - what was read before an error counts
        except FAULTS:
            if len(leaves) > 1:
                middle = len(leaves) // 2
                return self.rows(leaves[:middle]) + self.rows(leaves[middle:])
        return found


def _inner_page(leaves: Sequence[int]) -> bytes:
    """An inner page of a table over these leaves; a scan doesn't look at its keys."""
    *left, right = leaves
    cells = [struct.pack(">I", leaf) + _varint(key) for key, leaf in enumerate(left, 1)]
    begin, pointers, body = PAGE, b"", b""
    for cell in cells:
        begin -= len(cell)
        pointers += struct.pack(">H", begin)
        body = cell + body
    head = struct.pack(">BHHHBI", _INNER, 0, len(cells), begin, 0, right) + pointers
    return head + bytes(begin - len(head)) + body


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([0x80 | number >> 7, number & 0x7F])
