"""Where the answers of a batch are kept: a file that only grows, so that a kill loses no answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO

from filelock import FileLock, Timeout

from medusa_core.batches.row import BatchRow
from medusa_core.errors import BatchError


class AnswersFile:
    """The answers so far; each new one lies on the disk before the next is written.

    Attributes:
        path: The file.
        done: Ids of the lines that were done when it was opened.
        num_failed: Those of them with an error.
    """

    def __init__(self, path: Path) -> None:
        """Open the file; what a kill left of a last line goes.

        Raises:
            BatchError: It can't be written, or holds something else.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path.with_name(f".{path.name}.lock"))
            self._lock.acquire(timeout=0)
            self._file: IO[bytes] = path.open("a+b")
            try:
                rows = self._mend()
            except BaseException:
                self._close()
                raise
            self.done = frozenset(str(row.id) for row in rows)
            self.num_failed = sum(row.error is not None for row in rows)
        except Timeout as error:
            raise BatchError(
                f"Another batch writes into {path}.", "Wait for it, or name another file."
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error

    def __enter__(self) -> AnswersFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def add(self, row: BatchRow) -> None:
        """Add an answer; it lies on the disk when this returns.

        Raises:
            BatchError: The disk is full or gone.
        """
        line = json.dumps(row._asdict(), ensure_ascii=False) + "\n"
        try:
            self._file.write(line.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _close(self) -> None:
        self._file.close()
        self._lock.release()

    def _mend(self) -> list[BatchRow]:
        """Cut off a torn last line; returns the others."""
        self._file.seek(0)
        whole = self._file.read()
        kept = whole.rfind(b"\n") + 1
        rows = [_parsed(line, self.path) for line in whole[:kept].split(b"\n") if line.strip()]
        if kept < len(whole):
            self._file.truncate(kept)
            os.fsync(self._file.fileno())
        return rows


def _parsed(line: bytes, path: Path) -> BatchRow:
    try:
        return BatchRow(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise BatchError(
            f"{path} holds something else than answers.", "Name another file for them."
        ) from error


def _unwritable(path: Path, error: OSError) -> BatchError:
    return BatchError(
        f"{path} can't be written: {error.strerror or error}.",
        "Make room or name another file; the same command goes on.",
    )
