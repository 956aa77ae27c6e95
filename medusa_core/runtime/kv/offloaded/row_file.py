"""A file for cached rows that has no name, so that nothing is left of it.

It is sparse: what was never written takes no room. It is read and written past the page cache where
that can be, as all of it comes once a step: there it would only push other things out of memory.
Nothing here needs torch.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

from medusa_core.errors import TierError
from medusa_core.runtime.kv.size import PAGE_BYTES
from medusa_core.runtime.offload.disk_room import check_room, write_error
from medusa_core.runtime.offload.layer_file import UNDONE, open_direct

_WHAT = "The cached rows"


class RowFile:
    """A file without a name, read by several threads and written by one."""

    def __init__(self, folder: Path, num_bytes: int, whole_pages: bool) -> None:
        """Make it.

        Args:
            folder: On the disk.
            num_bytes: How large it is; it takes room as it is written.
            whole_pages: Is it written in whole pages, from memory that begins at such?

        Raises:
            TierError: The disk has no room for it, or can't be written.
        """
        self._folder = folder
        self._num_bytes = num_bytes
        self._reading = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_room(folder, num_bytes, _WHAT)
            self._writer, self._reader = _open_nameless(folder, whole_pages)
            self._writer.truncate(num_bytes)
        except OSError as error:
            raise write_error(folder, error, _WHAT) from error
        for file in (self._writer, self._reader):
            weakref.finalize(self, file.close)

    def read(self, offset: int, into: memoryview) -> None:
        """Fill memory.

        Args:
            offset: First byte; a multiple of 4096.
            into: As many bytes, a multiple of 4096, aligned to it.

        Raises:
            TierError: The disk fails, or the file was cut.
        """
        try:
            with self._reading:
                self._reader.seek(offset)
                while into:
                    count = self._reader.readinto(into)
                    if not count or count % PAGE_BYTES:
                        raise self._cut()
                    into = into[count:]
        except OSError as error:
            raise TierError(
                f"Cached rows can't be read from {self._folder}: {error.strerror or error}.",
                "Check the disk, then ask again.",
            ) from error

    def write(self, offset: int, content: memoryview) -> None:
        """Write bytes.

        Raises:
            TierError: The disk is full or fails, or the file was cut.
        """
        try:
            if os.fstat(self._writer.fileno()).st_size != self._num_bytes:
                raise self._cut()  # what is missing would come back as zeros
            self._writer.seek(offset)
            while content:
                content = content[self._writer.write(content) :]
        except OSError as error:
            raise write_error(self._folder, error, _WHAT) from error

    def _cut(self) -> TierError:
        return TierError(
            f"The file of cached rows in {self._folder} was cut from outside.",
            "Load the model again.",
        )


def _open_nameless(folder: Path, whole_pages: bool) -> tuple[Any, Any]:
    """A file to be written, and the same to be read; see `RowFile`.

    Its name goes at once where the system allows that, else with its last handle: even if the
    program is killed. If it is in between, the next load tidies up as after one that wrote layers.
    """
    handle, name = tempfile.mkstemp(suffix=UNDONE, prefix=f"{os.getpid()}-", dir=folder)
    if os.name == "nt":
        os.close(handle)
        flags = getattr(os, "O_TEMPORARY", 0) | getattr(os, "O_BINARY", 0)
        writer, reader = (os.open(name, flags | way) for way in (os.O_WRONLY, os.O_RDONLY))
        return os.fdopen(writer, "wb", buffering=0), os.fdopen(reader, "rb", buffering=0)
    path = Path(name)
    with os.fdopen(handle, "wb", buffering=0) as plain:
        try:
            reader = open_direct(path)
            if whole_pages:
                return open_direct(path, writes=True), reader
            return os.fdopen(os.dup(plain.fileno()), "wb", buffering=0), reader
        finally:
            path.unlink()
