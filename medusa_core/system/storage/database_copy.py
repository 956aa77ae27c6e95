"""Creating a database file, and replacing a damaged one.

Power may fail after any step: the next start completes the replacement.
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

from medusa_core.i18n import tr
from medusa_core.system.storage.database_backup import (
    beside,
    is_sound,
    make_private,
    newest_backup,
)
from medusa_core.system.storage.database_faults import FAULTS
from medusa_core.system.storage.database_salvage import salvage
from medusa_core.system.storage.database_schema import (
    Mend,
    Migration,
    connect,
    migrate,
    version_of,
)

log = logging.getLogger(__name__)

_PRIVATE = 0o600
_BESIDE = ("-wal", "-shm")


def marker_of(path: Path) -> Path:
    """Return the path of the file whose existence marks a database as damaged."""
    return beside(path, ".failed")


def was_left_open(path: Path) -> bool:
    """Whether the last program didn't close it, or one has it open."""
    log_file = beside(path, "-wal")
    return log_file.exists() and log_file.stat().st_size > 0


def create(path: Path, migrations: Sequence[Migration]) -> None:
    """Create a file atomically, as an empty one would count as damaged.

    Raises:
        sqlite3.Error: It can't be created.
        OSError: It can't be created.
    """
    set_aside(path, (*_BESIDE, ".backup"))  # leftovers of a file that was deleted
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / "new.db"
        build(made, migrations)
        try:
            os.link(made, path)  # unlike a rename, it never replaces an existing file
        except FileExistsError:
            log.info("another program has created %s", path)
        except OSError:  # a file system without links
            made.rename(path)


def build(path: Path, migrations: Sequence[Migration]) -> None:
    """Create a file by running all migrations.

    Raises:
        sqlite3.Error: It can't be created.
    """
    make_private(path)
    with closing(connect(path)) as db:
        migrate(db, migrations, len(migrations))


def load_into_memory(path: Path, db: sqlite3.Connection, newest: int) -> None:
    """Copy a file into a database without writing to the file's folder; errors are only logged.

    Args:
        db: The database, which stays empty if the file can't be read.
        newest: Newest known version; a newer file isn't read.
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
        # Without room for a copy, the file can be read, but not its write-ahead log.
        _load(f"{path.absolute().as_uri()}?immutable=1", db, newest)
    except (*FAULTS, OSError):
        log.warning("%s can't be read", path, exc_info=True)


def _load(uri: str, db: sqlite3.Connection, newest: int) -> None:
    """Copy a sound file of a known version into an open database."""
    with closing(sqlite3.connect(uri, uri=True)) as found:
        if is_sound(found) and version_of(found) <= newest:
            found.backup(db)


def replace_damaged(path: Path, migrations: Sequence[Migration], mend: Mend) -> str:
    """Replace a damaged file by its salvaged rows, or else by its newest backup.

    Returns:
        A notice for people.

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
    backup = newest_backup(path, migrations, work / "backup.db")
    salvaged = salvage(wreck, made, migrations, mend, backup)
    outcome: str = tr("what can still be read of it was saved ({0:,} entries)", salvaged.num_read)
    if not salvaged.num_read and backup is None:
        outcome = tr("nothing of it can be read, and a new one was begun")
    elif not salvaged.num_read and backup is not None:
        backup.replace(made)
        outcome = tr("nothing of it can be read, and its last backup took its place")
    elif salvaged.num_from_backup:
        outcome = tr(
            "{0}, and {1:,} more came from its last backup", outcome, salvaged.num_from_backup
        )
    made.chmod(_PRIVATE)
    made.replace(_salvaged(path))
    kept = finish_replacement(path)
    return tr(
        "The file {0} was damaged: {1}. The damaged file is kept as {2}.", path.name, outcome, kept
    )


def finish_replacement(path: Path) -> str:
    """Move a salvaged file into place, if there is one; return the damaged file's new name."""
    salvaged = _salvaged(path)
    shutil.rmtree(beside(path, ".salvaging"), ignore_errors=True)
    if not salvaged.exists():
        return ""
    kept = set_aside(path)
    salvaged.replace(path)
    marker_of(path).unlink(missing_ok=True)
    return kept


def set_aside(path: Path, beside_it: Sequence[str] = _BESIDE) -> str:
    """Rename a file and its accompanying files, and return the new name.

    The write-ahead log is renamed first: SQLite would apply it to any file of that name.
    """
    there = [ending for ending in (*beside_it, "") if beside(path, ending).exists()]
    if not there:
        return ""
    names = (f"{path.name}.damaged-{number}" for number in count(1))
    name = next(
        name
        for name in names
        if not any(path.with_name(name + e).exists() for e in ("", *beside_it))
    )
    for ending in there:
        beside(path, ending).replace(path.with_name(name + ending))
    return name


def _salvaged(path: Path) -> Path:
    """Return the path of the salvaged file before it is moved into place."""
    return beside(path, ".salvaged")


def _copy(path: Path, copy: Path) -> None:
    """Copy a file and its write-ahead log."""
    for ending in ("", "-wal"):
        if beside(path, ending).exists():
            shutil.copyfile(beside(path, ending), beside(copy, ending))
