"""Cached rows on a disk: of every session and layer a region for a whole context, in one file."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.offloaded.block_rows import BlockRows
from medusa_core.runtime.kv.offloaded.block_store import BlockStore
from medusa_core.runtime.kv.offloaded.blocks import RowBlocks
from medusa_core.runtime.kv.offloaded.row_file import RowFile
from medusa_core.runtime.kv.size import PAGE_BYTES, ROUND_ROWS, staging_bytes

_WORD_BYTES = 8


class DiskStore(BlockStore):
    """Rows in a file; see `BlockStore`."""

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
        """See `BlockStore`.

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

    def new_rows(self) -> BlockRows:
        return BlockRows(self)

    def _take_room(self) -> None:
        self._file = RowFile(self._folder, self.num_sessions * self.slot_bytes)
        self._staging = self.new_staging()

    def new_staging(self) -> RowBlocks:
        largest = max(self.place(layer).row_bytes for layer in self.layers)
        size = staging_bytes(largest, self.num_rows)
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
