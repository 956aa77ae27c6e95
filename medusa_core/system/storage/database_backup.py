"""Backups of a database in its folder: one before each migration, and one that is renewed."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from medusa_core.system.files.atomic_file import sync_folder
from medusa_core.system.storage.database_faults import FAULTS, damage
from medusa_core.system.storage.database_schema import Migration, migrate, version_of

log = logging.getLogger(__name__)

_PRIVATE = 0o600


def beside(path: Path, ending: str) -> Path:
    """Return the path of an accompanying file, such as `NAME-wal`."""
    return path.with_name(path.name + ending)


def make_private(path: Path) -> None:
    """Create a file with mode 0600, which SQLite copies for the write-ahead log."""
    path.touch(_PRIVATE)


def backup_of(path: Path) -> Path:
    """Return the path of the renewed backup."""
    return beside(path, ".backup")


def is_due(path: Path, age_s: float) -> bool:
    """Whether the backup is missing, or old enough with something written since.

    Raises:
        OSError: The file has been removed.
    """
    backup = backup_of(path)
    if not backup.exists():
        return True
    made_s = backup.stat().st_mtime
    is_old = not 0 <= time.time() - made_s < age_s  # negative if the clock was set back
    stats = [each.stat() for each in (path, beside(path, "-wal")) if each.exists()]
    return is_old and any(stat.st_size and stat.st_mtime > made_s for stat in stats)


def back_up(db: sqlite3.Connection, path: Path, backup: Path) -> None:
    """Copy a database, check the copy, and replace the backup by it.

    Args:
        db: Connection to the file.
        backup: Path of the backup.

    Raises:
        sqlite3.Error: The file is damaged, or there is no room.
        OSError: It can't be written.
    """
    for left in path.parent.glob(f"{path.name}.backup-part-*"):  # by killed programs
        left.unlink(missing_ok=True)
    # One for each process: two that back up at once don't write into the same file.
    part = beside(path, f".backup-part-{os.getpid()}")
    make_private(part)
    begun_s = time.time()
    try:
        with closing(sqlite3.connect(part)) as copy:
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            if not is_sound(copy):
                raise damage("its copy isn't sound")
        os.utime(part, (begun_s, begun_s))  # so that concurrent writes count as newer
        part.replace(backup)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether SQLite's quick check finds no error."""
    return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))


def newest_backup(path: Path, migrations: Sequence[Migration], copy: Path) -> Path | None:
    """Copy the newest sound backup and migrate the copy; return None if there is none."""
    backups = [backup_of(path), *path.parent.glob(f"{path.name}.backup-[0-9]*")]
    there = [backup for backup in backups if backup.exists()]
    for backup in sorted(there, key=lambda each: each.stat().st_mtime, reverse=True):
        try:
            shutil.copyfile(backup, copy)
            with closing(sqlite3.connect(copy, isolation_level=None)) as db:
                if is_sound(db) and 0 < version_of(db) <= len(migrations):
                    migrate(db, migrations, len(migrations))
                    return copy
        except (*FAULTS, OSError):
            log.info("%s can't be used", backup, exc_info=True)
    return None
