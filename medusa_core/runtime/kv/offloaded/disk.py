"""Cached rows on a disk: a file that has no name, so that nothing is left of it.

Of every session and layer there is a region for a whole context. The file is sparse: what was never
written takes no room. It is read past the page cache where that can be, as all of it comes once a
step; and a block is written once.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from medusa_core.errors import TierError
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.offloaded.store import RowBlocks, RowStore
from medusa_core.runtime.kv.size import PAGE_BYTES, ROUND_ROWS, staging_bytes
from medusa_core.runtime.offload.disk_room import check_room, write_error
from medusa_core.runtime.offload.layer_file import UNDONE, open_direct

_WHAT = "The cached rows"
_WORD_BYTES = 8


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
            folder.mkdir(parents=True, exist_ok=True)
            check_room(folder, num_bytes, _WHAT)
            self._writer, self._reader = _open_nameless(folder)
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


class DiskStore(RowStore):
    """Rows in a file; see `RowStore`."""

    def __init__(
        self,
        config: ModelConfig,
        layers: tuple[int, ...],
        num_sessions: int,
        num_rows: int,
        folder: Path,
        tree_rows: int = 1,
        cache_format: str = "",
    ) -> None:
        """See `RowStore`.

        Args:
            config: As there, and so are the others.
            layers: As there.
            num_sessions: As there.
            num_rows: As there.
            folder: Where the file lies.
            tree_rows: As there.
            cache_format: As there.
        """
        super().__init__(config, layers, num_sessions, num_rows, tree_rows, cache_format)
        self._folder = folder

    def _take_room(self) -> None:
        self._file = RowFile(self._folder, self.num_sessions * self.slot_bytes)
        self._staging = self.new_staging()

    def new_staging(self) -> RowBlocks:
        largest = max(self.place(layer).row_bytes for layer in self.layers)
        size = staging_bytes(ROUND_ROWS * largest)
        whole = np.empty(size + PAGE_BYTES, np.uint8)
        start = -whole.ctypes.data % PAGE_BYTES
        return whole[start : start + size].view(np.uint64)

    def read(
        self, slot: int, layer: int, first: int, into: RowBlocks, staging: RowBlocks | None = None
    ) -> float:
        staging = self._staging if staging is None else staging
        heads, num_blocks, words = into.shape
        block = heads * words * _WORD_BYTES
        at_once = (staging.nbytes - 2 * PAGE_BYTES) // block
        content, busy = staging.view(np.uint8).data, 0.0
        for start in range(0, num_blocks, at_once):
            count = min(at_once, num_blocks - start)
            offset = self._offset(slot, layer, first + start)
            before = offset % PAGE_BYTES  # reads begin and end at whole pages
            end = -(-(before + count * block) // PAGE_BYTES) * PAGE_BYTES
            began = time.perf_counter()
            self._file.read(offset - before, content[:end])
            busy += time.perf_counter() - began
            got = staging[before // _WORD_BYTES :][: count * heads * words]
            into[:, start : start + count] = got.reshape(count, heads, words).transpose(1, 0, 2)
        return busy

    def write(self, slot: int, layer: int, first: int, blocks: RowBlocks) -> None:
        began = time.perf_counter()
        heads, num_blocks, words = blocks.shape
        block = heads * words * _WORD_BYTES
        at_once = self._staging.nbytes // block
        for start in range(0, num_blocks, at_once):
            some = blocks[:, start : start + at_once].transpose(1, 0, 2)
            laid = self._staging[: some.size].reshape(some.shape)
            laid[...] = some
            self._file.write(self._offset(slot, layer, first + start), laid.data.cast("B"))
        self.written_bytes += num_blocks * block
        self.written_s += time.perf_counter() - began

    def _offset(self, slot: int, layer: int, block: int) -> int:
        place = self.place(layer)
        return slot * self.slot_bytes + place.offset + block * ROUND_ROWS * place.row_bytes


def _open_nameless(folder: Path) -> tuple[Any, Any]:
    """A file to be written, and the same to be read past the page cache.

    Its name goes at once where the system allows that, else as the program ends: even if it is
    killed. A program that is killed in between is tidied up after like one that wrote layers.
    """
    prefix = f"{os.getpid()}-"
    if os.name == "nt":
        return _open_temporary(folder, prefix)
    handle, name = tempfile.mkstemp(suffix=UNDONE, prefix=prefix, dir=folder)
    writer = os.fdopen(handle, "wb", buffering=0)
    try:
        return writer, open_direct(Path(name))
    finally:
        Path(name).unlink()


def _open_temporary(folder: Path, prefix: str) -> tuple[Any, Any]:
    """As Windows has it: the file goes with its last handle."""
    temporary = getattr(os, "O_TEMPORARY", 0) | getattr(os, "O_BINARY", 0)
    handle, name = tempfile.mkstemp(suffix=UNDONE, prefix=prefix, dir=folder)
    os.close(handle)
    writer = os.open(name, os.O_WRONLY | temporary)
    reader = os.open(name, os.O_RDONLY | temporary)
    return os.fdopen(writer, "wb", buffering=0), os.fdopen(reader, "rb", buffering=0)
