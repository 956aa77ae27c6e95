"""Rows read from pages are those that SQLite reads."""

import random
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from medusa_core.system.storage.database_pages import PAGE, PagesOf, SqlValue

LENGTHS = (0, 1, 500, 4056, 4057, 4058, 4059, 4060, 4061, 4062, 4100, 9000, 100_000)


def rows(chance: random.Random) -> list[tuple[int, list[SqlValue]]]:
    """Rows of all kinds and lengths, with numbers near and far."""
    numbers = [*range(-3, 60), 1 << 40, (1 << 62) + 1, -(1 << 63)]
    values: list[SqlValue] = [
        None,
        0,
        1,
        -1,
        127,
        -129,
        1 << 20,
        -(1 << 30),
        1 << 45,
        -(1 << 63),
        0.5,
    ]
    return [
        (
            number,
            [
                chance.choice(values),
                "ä" * (chance.choice(LENGTHS) // 2),
                chance.randbytes(chance.choice(LENGTHS)),
                number,
            ],
        )
        for number in numbers
    ]


def by_number(pages: PagesOf) -> list[tuple[int, list[SqlValue]]]:
    """Rows of the table of four columns."""
    return sorted((row for row in pages.rows() if len(row[1]) == 4), key=lambda row: row[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


def fill(db: sqlite3.Connection, found: list[tuple[int, list[SqlValue]]]) -> None:
    db.executemany(
        "INSERT INTO t (rowid, a, b, c, d) VALUES (?, ?, ?, ?, ?)",
        [(number, *values) for number, values in found],
    )


def test_each_row_is_read_from_raw_pages_unchanged(path: Path) -> None:
    wanted = rows(random.Random(1))
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a, b TEXT, c BLOB, d INTEGER)")
        fill(db, wanted)
        db.commit()
    pages = PagesOf(path, path.with_name("none"))
    assert by_number(pages) == sorted(wanted, key=lambda row: row[0])


def test_a_write_ahead_log_counts_up_to_its_last_commit(path: Path) -> None:
    log = path.with_name("x.db-wal")
    wanted = rows(random.Random(2))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE t (a, b TEXT, c BLOB, d INTEGER)")
        db.execute("PRAGMA cache_size = 4")  # what isn't committed is in the log, too
        fill(db, wanted[:40])
        db.execute("BEGIN")
        fill(db, wanted[40:])
        db.execute("DELETE FROM t WHERE rowid < 10")
        committed = by_number(PagesOf(path, log))
        assert committed == sorted(wanted[:40], key=lambda row: row[0])
        db.execute("COMMIT")
        after = [row for row in wanted if row[0] >= 10]
        assert by_number(PagesOf(path, log)) == sorted(after, key=lambda row: row[0])


def test_damage_loses_only_its_own_rows(path: Path) -> None:
    chance = random.Random(3)
    wanted = dict(rows(chance))
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a, b TEXT, c BLOB, d INTEGER)")
        fill(db, list(wanted.items()))
        db.commit()
    sound = path.read_bytes()
    for _ in range(60):
        raw = bytearray(sound[: chance.randrange(PAGE, len(sound))])
        for _ in range(chance.choice((1, 30, 3000))):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(raw)
        log = path.with_name("torn")
        log.write_bytes(chance.randbytes(chance.randrange(20_000)))
        assert all(values for _, values in PagesOf(path, log).rows())


def test_a_cyclic_row_ends(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a, b TEXT, c BLOB, d INTEGER)")
        fill(db, [(1, [None, "a" * 100_000, b"", 1])])
        db.commit()
    raw = bytearray(path.read_bytes())
    for begin in range(2 * PAGE, len(raw), PAGE):
        raw[begin : begin + 4] = struct.pack(">I", 3)
    path.write_bytes(raw)
    assert list(PagesOf(path, path.with_name("none")).rows()) == []
