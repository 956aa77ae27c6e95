"""An unnamed file for KV rows, of which a killed program leaves nothing.

It is sparse: unwritten parts take no room. It is read with O_DIRECT where possible, because each
step reads all of it once, which would evict everything else from the page cache. Long pieces are
written with O_DIRECT, too, which is several times as fast; short ones aren't, because each write
would wait for the disk. Nothing here needs torch.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

from medusa_core.errors import TierError
from medusa_core.i18n import tr
from medusa_core.runtime.kv.size import PAGE_BYTES
from medusa_core.runtime.offload.disk_room import check_room, write_error
from medusa_core.runtime.offload.layer_file import UNDONE, open_direct
from medusa_core.system.files.atomic_file import create_part
from medusa_core.system.files.own_folder import make_own_folder

DIRECT_BYTES = 1 << 20  # longer pieces are written with O_DIRECT
_WHAT = "The cached rows"


class RowFile:
    """An unnamed file that several threads read and one writes."""

    def __init__(self, folder: Path, num_bytes: int) -> None:
        """Create the file.

        Args:
            folder: Folder on the disk.
            num_bytes: Its size; it takes room as it is written.

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
        """Read bytes.

        Args:
            offset: First byte; a multiple of 4096.
            into: Destination, aligned to 4096; its size is a multiple of that.

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
                tr(
                    "Cached rows can't be read from {0}: {1}.",
                    self._folder,
                    error.strerror or error,
                ),
                "Check the disk, then ask again.",
            ) from error

    def write(self, offset: int, content: memoryview) -> None:
        """Write bytes.

        Args:
            offset: First byte.
            content: The bytes; page-aligned if they are long.

        Raises:
            TierError: The disk is full or fails, or the file was cut.
        """
        try:
            if os.fstat(self._writer.fileno()).st_size != self._num_bytes:
                raise self._cut()  # missing parts would be read as zeros
            whole_pages = offset % PAGE_BYTES == len(content) % PAGE_BYTES == 0
            is_long = len(content) >= DIRECT_BYTES
            file = self._direct_writer if whole_pages and is_long else self._writer
            file.seek(offset)
            while content:
                content = content[file.write(content) :]
        except OSError as error:
            raise write_error(self._folder, error, _WHAT) from error

    def _cut(self) -> TierError:
        """The error of a file that another program has truncated."""
        return TierError(
            tr("The file of cached rows in {0} was cut from outside.", self._folder),
            "Load the model again.",
        )


def _open_nameless(folder: Path) -> tuple[Any, Any, Any]:
    """Create a file and return handles: to write it, to write it with O_DIRECT, to read it so.

    POSIX systems delete its name at once, Windows with the last handle, even if the program is
    killed. The name of a program that is killed in between is removed like a layer file's.
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
