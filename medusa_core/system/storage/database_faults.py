"""Translates errors of SQLite into messages for people."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from medusa_core.errors import StorageError
from medusa_core.i18n import tr

# SQLite's messages quote a damaged file, whose bytes may not be UTF-8.
FAULTS = (sqlite3.Error, UnicodeDecodeError)

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_REFUSED = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_AUTH,
)


def code_of(error: Exception) -> int:
    """Return the primary result code of an error."""
    # Errors of the Python module, such as for a closed connection, have no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_damage(error: BaseException | None) -> bool:
    """Whether an error means that the file is damaged."""
    if isinstance(error, UnicodeDecodeError):
        return True
    return isinstance(error, sqlite3.Error) and code_of(error) in _DAMAGED


def damage(problem: str) -> sqlite3.DatabaseError:
    """Return the error of a damaged file."""
    error = sqlite3.DatabaseError(problem)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def as_storage_error(error: Exception, path: Path | None) -> StorageError:
    """Translate an error of SQLite or of the system."""
    name = "The database in memory" if path is None else str(path)
    folder = "its folder" if path is None else str(path.parent)
    if isinstance(error, OSError):
        return StorageError(
            tr("{0} can't be opened: {1}.", name, error.strerror or error),
            tr("See that you may write to {0}, and that the disk has room.", folder),
        )
    if isinstance(error, FAULTS):
        code = sqlite3.SQLITE_CORRUPT if is_damage(error) else code_of(error)
        if code == sqlite3.SQLITE_FULL:
            return StorageError(
                tr("The disk is full: {0} can't be written.", name),
                "Make room on it, then try again.",
            )
        if code in _BUSY:
            return StorageError(
                tr("Another program is using {0}.", name),
                "Close the other program, then try again.",
            )
        if code in _REFUSED:
            return StorageError(
                tr("{0} can't be opened or written.", name),
                tr("See that you may write to {0} and to the files in it.", folder),
            )
        if code in _DAMAGED:
            return StorageError(
                tr("{0} is damaged.", name),
                "Start Medusa Chat again: the file is set aside, and what can be read is saved.",
            )
        if code == sqlite3.SQLITE_IOERR:
            return StorageError(
                tr("The disk failed while {0} was read or written.", name),
                "See that the disk is connected and has room, then try again.",
            )
    return StorageError(
        tr("{0} can't be read or written: {1}.", name, error), "Start Medusa Chat again."
    )
