"""The answers file of a batch: append-only, so that no answer is lost if the process is killed."""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from medusa_core.errors import BatchError
from medusa_core.i18n import tr
from medusa_core.system.jobs.batch.row import (
    BatchRow,
    row_of,
)

_BEGIN = b'{"id": '  # the start of each row that `AnswersFile.add` writes
_FIRST = re.compile(rb'\{"id": (?:"(?:[^"\\]|\\.)*"|-?\d+), "text": "', re.DOTALL)


class AnswersFile:
    """The answers so far; each row is synced to disk before the next is written.

    Attributes:
        path: The file.
        done: Ids of the lines that were done when it was opened.
        num_failed: Number of these with an error.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, and remove an incomplete last row.

        Raises:
            BatchError: It can't be written, or has other contents, which are left unchanged.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path.with_name(f".{path.name}.lock"))
            self._lock.acquire(timeout=0)
            self._file: io.FileIO = path.open("a+b", buffering=0)
            try:
                rows = self._repair()
            except BaseException:
                self._close()
                raise
            self.done = frozenset(str(row.id) for row in rows)
            self.num_failed = sum(row.error is not None for row in rows)
        except Timeout as error:
            raise BatchError(
                tr("Another batch writes into {0}.", path), "Wait for it, or name another file."
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error

    def __enter__(self) -> AnswersFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def add(self, row: BatchRow) -> None:
        """Append an answer, and sync it to disk.

        Raises:
            BatchError: The disk is full or gone.
        """
        line = json.dumps(row._asdict(), ensure_ascii=False) + "\n"
        try:
            self._append(line.encode())
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _append(self, line: bytes) -> None:
        """Write a whole line and sync it; an incomplete one is truncated away again."""
        end = self._file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._file.truncate(end)
            raise

    def _close(self) -> None:
        """Close the file and release its lock."""
        try:
            self._file.close()
        except OSError as error:  # some network disks report only now that they are full
            raise _unwritable(self.path, error) from error
        finally:
            self._lock.release()

    def _repair(self) -> list[BatchRow]:
        """Remove a torn last row; returns the others."""
        self._file.seek(0)
        whole = self._file.readall()
        kept = whole.rfind(b"\n") + 1
        rows = [_parsed(line, self.path) for line in whole[:kept].split(b"\n") if line.strip()]
        tail = whole[kept:]
        if tail and _is_torn(tail, bool(rows)):
            self._file.truncate(kept)
            os.fsync(self._file.fileno())
        elif tail:
            rows.append(_parsed(tail, self.path))
            self._append(b"\n")
        return rows


def _is_torn(tail: bytes, follows_rows: bool) -> bool:
    """Whether a last line without line break is an incomplete row of ours."""
    if len(tail) <= len(_BEGIN):
        return _BEGIN.startswith(tail)
    if not tail.startswith(_BEGIN) or not (follows_rows or _FIRST.match(tail)):
        return False
    try:
        json.loads(tail)
    except (ValueError, RecursionError):
        return True
    return False  # a complete object: a row without line break, or other contents


def _parsed(line: bytes, path: Path) -> BatchRow:
    """Parse a line of the file.

    Raises:
        BatchError: It is no answer of a batch.
    """
    try:
        return row_of(line)
    except ValueError as error:
        raise BatchError(
            tr("{0} holds something else than answers.", path),
            "Name another file for them; this one stays as it is.",
        ) from error


def _unwritable(path: Path, error: OSError) -> BatchError:
    """The error of a full or missing disk."""
    return BatchError(
        tr("{0} can't be written: {1}.", path, error.strerror or error),
        "Make room or name another file; the same command goes on.",
    )
