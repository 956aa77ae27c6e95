"""Files beside a database: a new one before it is in place, backups, and damaged ones.

Each step may be the last one before the power goes: the next start finishes what it finds.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

from medusa_core.system.storage.database_faults import FAULTS
from medusa_core.system.storage.database_salvage import salvage
from medusa_core.system.storage.database_schema import (
    Mend,
    Migration,
    connect,
    run_migration,
    version_of,
)

log = logging.getLogger(__name__)

_PRIVATE = 0o600
_BESIDE = ("-wal", "-shm")


def beside(path: Path, ending: str) -> Path:
    """A file whose name begins like the database's."""
    return path.with_name(path.name + ending)


def marker_of(path: Path) -> Path:
    """The file that says that the database failed while it was used."""
    return beside(path, ".failed")


def was_left_open(path: Path) -> bool:
    """Whether the last program ended without closing it, or one has it open."""
    log_file = beside(path, "-wal")
    return log_file.exists() and log_file.stat().st_size > 0


def create(path: Path, migrations: Sequence[Migration]) -> None:
    """Make a file that is complete when it appears: an empty one is a damaged one.

    Raises:
        sqlite3.Error: It can't be made.
        OSError: It can't be made.
    """
    set_aside(path)  # a log without its file belongs to another one
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / "new.db"
        build(made, migrations)
        try:
            os.link(made, path)  # unlike a rename, this never replaces another program's
        except FileExistsError:
            log.info("another program has made %s", path)
        except OSError:  # a file system without links
            made.rename(path)


def build(path: Path, migrations: Sequence[Migration]) -> None:
    """Make a file by migrations.

    Raises:
        sqlite3.Error: It can't be made.
    """
    _make_private(path)
    with closing(connect(path)) as db:
        for number, migration in enumerate(migrations):
            run_migration(db, migration, number + 1)


def _make_private(path: Path) -> None:
    """Begin a file that nobody else may read; its log will be the same."""
    path.touch(_PRIVATE)


def back_up(db: sqlite3.Connection, path: Path, version: int) -> Path:
    """Keep what a file was before it is migrated.

    Raises:
        sqlite3.Error: There is no room.
        OSError: It can't be written.
    """
    backup, part = beside(path, f".backup-{version}"), beside(path, ".backup-part")
    part.unlink(missing_ok=True)
    _make_private(part)
    with closing(sqlite3.connect(part)) as copy:
        db.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    part.replace(backup)
    return backup


def backups_of(path: Path) -> list[Path]:
    """All backups, the newest first."""
    found = path.parent.glob(f"{path.name}.backup-[0-9]*")
    return sorted(found, key=lambda backup: backup.stat().st_mtime, reverse=True)


def load_into_memory(path: Path, db: sqlite3.Connection, newest: int) -> None:
    """Fill a database with what a file holds, without writing beside it; or leave it empty.

    Args:
        path: The file.
        db: The database.
        newest: A file of a newer version isn't read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="medusa-") as folder:
            copy = Path(folder) / path.name
            _copy(path, copy)
            _load(copy.as_uri(), db, newest)
            return
    except (*FAULTS, OSError):
        log.info("%s can't be copied", path, exc_info=True)
    try:
        # A full disk: what is in the file can be read, what is in the log can't.
        _load(f"{path.absolute().as_uri()}?immutable=1", db, newest)
    except (*FAULTS, OSError):
        log.warning("%s can't be read", path, exc_info=True)


def _load(uri: str, db: sqlite3.Connection, newest: int) -> None:
    with closing(sqlite3.connect(uri, uri=True)) as found:
        is_well = found.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        if is_well and version_of(found) <= newest:
            found.backup(db)


def replace_damaged(path: Path, migrations: Sequence[Migration], mend: Mend) -> str:
    """Put what can be read of a damaged file, or else its newest backup, into its place.

    Returns:
        What was done, for people.

    Raises:
        sqlite3.Error: There is no room.
        OSError: There is no room.
    """
    log.warning("%s is damaged", path)
    work = beside(path, ".salvaging")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    made, wreck = work / "new.db", work / "wreck.db"
    _copy(path, wreck)
    num_rows = salvage(wreck, made, migrations, mend)
    told = f"what can still be read of it was saved ({num_rows:,} entries)"
    if not num_rows:
        told = "nothing of it can be read, and a new one was begun"
        for backup in backups_of(path):
            shutil.copyfile(backup, made)
            told = "nothing of it can be read, and its last backup took its place"
            break
    made.chmod(_PRIVATE)
    made.replace(_salvaged(path))
    kept = finish_replacement(path)
    return f"The file {path.name} was damaged: {told}. The damaged file is kept as {kept}."


def finish_replacement(path: Path) -> str:
    """Put a salvaged file in its place, if there is one; returns the damaged one's new name."""
    salvaged = _salvaged(path)
    shutil.rmtree(beside(path, ".salvaging"), ignore_errors=True)
    if not salvaged.exists():
        return ""
    kept = set_aside(path)
    salvaged.replace(path)
    marker_of(path).unlink(missing_ok=True)
    return kept


def set_aside(path: Path) -> str:
    """Rename a file and its log, so that nothing reads them by mistake; returns the new name.

    The log goes first: it would be played into whatever file is there.
    """
    there = [ending for ending in (*_BESIDE, "") if beside(path, ending).exists()]
    if not there:
        return ""
    names = (f"{path.name}.damaged-{number}" for number in count(1))
    name = next(
        name for name in names if not any(path.with_name(name + e).exists() for e in ("", *_BESIDE))
    )
    for ending in there:
        beside(path, ending).replace(path.with_name(name + ending))
    return name


def _salvaged(path: Path) -> Path:
    return beside(path, ".salvaged")


def _copy(path: Path, copy: Path) -> None:
    """Copy a file and its log."""
    for ending in ("", "-wal"):
        if beside(path, ending).exists():
            shutil.copyfile(beside(path, ending), beside(copy, ending))
