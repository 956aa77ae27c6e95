"""A file for cached rows that has no name, so that nothing is left of it.

It is sparse: what was never written takes no room. It is read past the page cache where that can
be, as all of it comes once a step: there it would only push other things out of memory. Long pieces
are written past it, too, which is several times as fast; short ones aren't: each would be waited
for.
Nothing here needs torch.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

from medusa_core.errors import TierError
from medusa_core.runtime.kv.size import PAGE_BYTES
from medusa_core.runtime.offload.disk_room import check_room, write_error
from medusa_core.runtime.offload.layer_file import UNDONE, open_direct
from medusa_core.system.files.atomic_file import create_part
from medusa_core.system.files.own_folder import make_own_folder

DIRECT_BYTES = 1 << 20  # pieces from this on are written past the page cache
_WHAT = "The cached rows"


class RowFile:
    """A file without a name, read by several threads and written by one."""

    def __init__(self, folder: Path, num_bytes: int) -> None:
        """Make it.

        Args:
            folder: On the disk.
            num_bytes: How large it is; it takes room as it is written.

        Raises:
            TierError: The disk has no room for it, or can't be written.
        """
        self._folder = folder
        self._num_bytes = num_bytes
        self._reading = threading.Lock()
        try:
            make_own_folder(folder)
            check_room(folder, num_bytes, _WHAT)
            self._writer, self._direct_writer, self._reader = _open_nameless(folder)
            for file in (self._writer, self._direct_writer, self._reader):
                weakref.finalize(self, file.close)
            self._writer.truncate(num_bytes)
        except OSError as error:
            raise write_error(folder, error, _WHAT) from error

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

        Args:
            offset: First byte.
            content: They, from where a page begins.

        Raises:
            TierError: The disk is full or fails, or the file was cut.
        """
        try:
            if os.fstat(self._writer.fileno()).st_size != self._num_bytes:
                raise self._cut()  # what is missing would come back as zeros
            whole_pages = offset % PAGE_BYTES == len(content) % PAGE_BYTES == 0
            is_long = len(content) >= DIRECT_BYTES
            file = self._direct_writer if whole_pages and is_long else self._writer
            file.seek(offset)
            while content:
                content = content[file.write(content) :]
        except OSError as error:
            raise write_error(self._folder, error, _WHAT) from error

    def _cut(self) -> TierError:
        return TierError(
            f"The file of cached rows in {self._folder} was cut from outside.",
            "Load the model again.",
        )


def _open_nameless(folder: Path) -> tuple[Any, Any, Any]:
    """A file: to be written, to be written past the page cache, and to be read past it.

    Its name goes at once where the system allows that, else with its last handle: even if the
    program is killed. If it is in between, the next load tidies up as after one that wrote layers.
    """
    path = create_part(folder, f"{os.getpid()}-", UNDONE)
    if os.name == "nt":
        flags = getattr(os, "O_TEMPORARY", 0) | getattr(os, "O_BINARY", 0)
        writer, reader = (os.open(path, flags | way) for way in (os.O_WRONLY, os.O_RDONLY))
        plain = os.fdopen(writer, "wb", buffering=0)
        return plain, plain, os.fdopen(reader, "rb", buffering=0)
    plain = path.open("wb", buffering=0)
    try:
        return plain, open_direct(path, writes=True), open_direct(path)
    finally:
        path.unlink()
