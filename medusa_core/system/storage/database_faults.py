"""Translates errors of SQLite into messages for people."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from medusa_core.errors import StorageError

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
            f"{name} can't be opened: {error.strerror or error}.",
            f"See that you may write to {folder}, and that the disk has room.",
        )
    if isinstance(error, FAULTS):
        code = sqlite3.SQLITE_CORRUPT if is_damage(error) else code_of(error)
        if code == sqlite3.SQLITE_FULL:
            return StorageError(
                f"The disk is full: {name} can't be written.", "Make room on it, then try again."
            )
        if code in _BUSY:
            return StorageError(
                f"Another program is using {name}.", "Close the other program, then try again."
            )
        if code in _REFUSED:
            return StorageError(
                f"{name} can't be opened or written.",
                f"See that you may write to {folder} and to the files in it.",
            )
        if code in _DAMAGED:
            return StorageError(
                f"{name} is damaged.",
                "Start Medusa Chat again: the file is set aside, and what can be read is saved.",
            )
        if code == sqlite3.SQLITE_IOERR:
            return StorageError(
                f"The disk failed while {name} was read or written.",
                "See that the disk is connected and has room, then try again.",
            )
    return StorageError(f"{name} can't be read or written: {error}.", "Start Medusa Chat again.")
