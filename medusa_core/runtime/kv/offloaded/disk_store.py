"""Offloaded KV rows on a disk: one file with a region for every session and layer.

The disk stores blocks of sixteen rows. Rows after the last whole block, and speculative ones, are
in a tail in memory:

    rows        0 ……………… stored | stored … length … reserved
    place       disk, in blocks | tail, in memory

A pass writes rows to the tail when it leaves a layer, and a commit writes whole blocks of the tail
to the disk. Decided rows that exceed the tail are written to the disk at once. The block with the
last committed row is written with them, so a pass that fails can still be undone.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape
from medusa_core.runtime.kv.offloaded.offloaded_kv import OffloadedKv, SpeculativeRows
from medusa_core.runtime.kv.offloaded.row_file import RowFile
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import (
    PAGE_BYTES,
    ROUND_ROWS,
    head_bytes,
    offloaded_row_bytes,
    region_bytes,
    row_groups,
    staging_bytes,
    tail_slots,
    whole_blocks,
)
from medusa_core.runtime.offload.memory import page_buffer

_WORD_BYTES = 8

# Rows of a layer as 64-bit words: [2 · kv heads, blocks, words of a head in a block].
KvBlocks = NDArray[np.uint64]


class LayerRegion(NamedTuple):
    """Where the rows of a layer are.

    Attributes:
        part: Index of the tail tensor; there is one for each shape of rows.
        place: Index of the layer in that tensor.
        row_bytes: Bytes of a row.
        offset: First byte of the layer's region in a slot of the file.
    """

    part: int
    place: int
    row_bytes: int
    offset: int


class DiskStore(KvStore):
    """Rows in a file, with tails in memory; see the module.

    Attributes:
        tail_rows: Slots of a tail.
        slot_bytes: Bytes of a session in the file; 0 before `allocate`.
        written_bytes: Bytes of blocks that were written so far.
        written_s: Seconds of writing.
    """

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
        """Describe the store; see `KvStore`.

        Args:
            config: Sizes of the target.
            layers: Indices of layers that have KV rows of their own.
            num_sessions: Most sessions at once.
            num_rows: Most rows of a session, a multiple of 16.
            folder: Folder of the file.
            tree_rows: Most speculative rows of one sequence in a step.
            cache_format: `q8_0` or `q4`, or empty for rows that aren't quantized.
        """
        super().__init__(config, layers, num_sessions, num_rows, cache_format)
        self.tail_rows = tail_slots(tree_rows)
        self.slot_bytes = 0
        self.written_bytes, self.written_s = 0, 0.0
        self._folder = folder
        self._dtype: torch.dtype | None = None
        self._device = torch.device("cpu")
        self._regions: dict[int, LayerRegion] = {}
        self._tails: list[Tensor] = []

    def allocate(self, dtype: torch.dtype, device: torch.device) -> None:
        """Create the file and the tails; see `KvStore`."""
        if self._dtype is None:
            groups = row_groups(self._config, self.layers)
            for part, layers in enumerate(groups.values()):
                for place, layer in enumerate(layers):
                    self._add_region(layer, part, place, dtype)
            self._file = RowFile(self._folder, self.num_sessions * self.slot_bytes)
            self._staging = self.new_staging()
            self._tails = [
                self._allocate_tails(shape, len(layers), dtype) for shape, layers in groups.items()
            ]
            self._dtype, self._device = dtype, device
        elif dtype is not self._dtype:
            raise EngineError(
                tr("Cached rows are kept as {0}, and these are {1}.", self._dtype, dtype)
            )

    def _add_region(self, layer: int, part: int, place: int, dtype: torch.dtype) -> None:
        """Reserve the next region of a slot for a layer."""
        row = offloaded_row_bytes(self._config, dtype.itemsize, self._cache_format, (layer,))
        self._regions[layer] = LayerRegion(part, place, row, self.slot_bytes)
        self.slot_bytes += region_bytes(row, self.num_rows)

    def _allocate_tails(self, shape: KvShape, num_layers: int, dtype: torch.dtype) -> Tensor:
        """Tails of the layers of a shape. [sessions, layers, 2, kv heads, slots, width]"""
        width = head_bytes(shape.head_dim, dtype.itemsize, self._cache_format) // dtype.itemsize
        sizes = (num_layers, 2, shape.num_kv_heads, self.tail_rows, width)
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                return torch.empty(self.num_sessions, *sizes, dtype=dtype)
        except RuntimeError as error:
            raise OutOfMemoryError(
                tr("No memory for the last cached rows of {0} conversations.", self.num_sessions),
                "Close other programs, or load the model for fewer conversations.",
                num_sessions=self.num_sessions,
            ) from error

    @property
    def device_bytes(self) -> int:
        """Bytes of the tails if they are in device memory."""
        return self._tail_bytes if self._device.type == "cpu" else 0

    @property
    def host_bytes(self) -> int:
        """Bytes of the tails if the device has memory of its own."""
        return 0 if self._device.type == "cpu" else self._tail_bytes

    @property
    def _tail_bytes(self) -> int:
        """Bytes of all tails."""
        return sum(tail.nbytes for tail in self._tails)

    @property
    def step_rows(self) -> int:
        """Most speculative rows that a tail takes after a whole block."""
        return self.tail_rows - ROUND_ROWS + 1

    def row_bytes(self, layer: int) -> int:
        """Bytes of a row in a layer."""
        return self._regions[layer].row_bytes

    def region(self, layer: int) -> LayerRegion:
        """Return where the rows of a layer are."""
        return self._regions[layer]

    def tails(self, slot: int) -> list[Tensor]:
        """Tails of a session, of each shape. [layers, 2, kv heads, slots, width]"""
        return [tail[slot] for tail in self._tails]

    def new_session(self) -> DiskKv:
        """Return the empty rows of another session; see `KvStore`."""
        return DiskKv(self)

    def new_staging(self) -> KvBlocks:
        """Allocate page-aligned memory through which one thread reads or writes."""
        largest = max(self.row_bytes(layer) for layer in self.layers)
        staging: KvBlocks = page_buffer(staging_bytes(largest, self.num_rows)).numpy()
        return staging.view(np.uint64)

    def read(
        self, slot: int, layer: int, first: int, into: KvBlocks, staging: KvBlocks | None = None
    ) -> float:
        """Read some blocks of a layer.

        Args:
            slot: Slot of the session.
            layer: Index of the layer.
            first: First block.
            into: Destination. [heads, blocks, words]
            staging: Memory from `new_staging`; None for that of the writing thread.

        Returns:
            Seconds of reading the disk, without those of rearranging blocks.

        Raises:
            TierError: The disk fails, or the file was cut.
        """
        staging = self._staging if staging is None else staging
        heads, num_blocks, words = into.shape
        block = heads * words * _WORD_BYTES
        at_once = (staging.nbytes - 2 * PAGE_BYTES) // block
        content, busy = staging.view(np.uint8).data, 0.0
        for start in range(0, num_blocks, at_once):
            count = min(at_once, num_blocks - start)
            offset = self._offset(slot, layer, first + start)
            before = offset % PAGE_BYTES  # direct reads begin and end at whole pages
            end = -(-(before + count * block) // PAGE_BYTES) * PAGE_BYTES
            began = time.perf_counter()
            self._file.read(offset - before, content[:end])
            busy += time.perf_counter() - began
            got = staging[before // _WORD_BYTES :][: count * heads * words]
            into[:, start : start + count] = got.reshape(count, heads, words).transpose(1, 0, 2)
        return busy

    def write(self, slot: int, layer: int, first: int, blocks: KvBlocks) -> None:
        """Write some blocks of a layer; see `read`.

        Raises:
            TierError: The disk is full or fails.
        """
        began = time.perf_counter()
        heads, num_blocks, words = blocks.shape
        block = heads * words * _WORD_BYTES
        at_once = self._staging.nbytes // block
        for start in range(0, num_blocks, at_once):
            some = blocks[:, start : start + at_once].transpose(1, 0, 2)
            staged = self._staging[: some.size].reshape(some.shape)
            staged[...] = some
            self._file.write(self._offset(slot, layer, first + start), staged.data.cast("B"))
        self.written_bytes += num_blocks * block
        self.written_s += time.perf_counter() - began

    def _offset(self, slot: int, layer: int, block: int) -> int:
        """First byte of a block in the file."""
        region = self.region(layer)
        return slot * self.slot_bytes + region.offset + block * ROUND_ROWS * region.row_bytes


class DiskKv(OffloadedKv):
    """One session's rows on a disk, with the last ones in tails; see the module.

    Attributes:
        stored: Number of committed rows that are on the disk; the others are in the tails.
        slot: Slot in the store.
        tails: Last rows of the layers, by shape of rows. [layers, 2, kv heads, slots, width] each
    """

    def __init__(self, store: DiskStore) -> None:
        """Take a slot.

        Raises:
            OutOfMemoryError: All slots are in use.
        """
        super().__init__()
        self.stored = 0
        self.slot = store.acquire_slot()
        self.tails = store.tails(self.slot)
        self._store = store
        self._free = weakref.finalize(self, store.release_slot, self.slot)
        self._length = self._end = 0  # committed rows, and these with the reserved ones
        self._bypasses_tail = False
        # Layers whose tail must be read back, and those whose decided rows are on the disk already.
        self._missing: set[int] = set()
        self._moved: set[int] = set()

    def release(self) -> None:
        """Free the slot."""
        self._free()

    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        """Begin a pass; decided rows that exceed the tail go to the disk at once."""
        self._bound = None
        self._restore_tails(length)
        in_tail = length + num_rows - self.stored <= self._store.tail_rows
        if length + num_rows > self._store.num_rows or not (in_tail or decided):
            raise EngineError(
                tr(
                    "{0} rows don't fit behind {1} of which {2} are stored.",
                    num_rows,
                    length,
                    self.stored,
                )
            )
        self._length, self._end = length, length + num_rows
        self._bypasses_tail = not in_tail

    def view_in(self, buffer: Tensor, layer: int) -> Tensor:
        """View a buffer as all rows of a layer up to the last reserved one, in whole blocks.

        Args:
            buffer: Memory, aligned to the size of a number. uint8 [bytes]
            layer: Index of the layer.

        Returns:
            [2, kv heads, slots, width]
        """
        tail = self._tail(layer)
        two, heads, _, width = tail.shape
        slots = whole_blocks(self._end)
        size = two * heads * slots * width
        return buffer[: size * tail.itemsize].view(tail.dtype).view(two, heads, slots, width)

    def copy_tail(self, layer: int, view: Tensor) -> None:
        """Append the committed rows of a tail to those that were read from the disk.

        Args:
            layer: Index of the layer.
            view: Rows of the layer with the stored ones in place. [2, kv heads, slots, width]
        """
        count = _num_blocks(self._length - self.stored)
        _copy_blocks(self._tail(layer), 0, view, self.stored // ROUND_ROWS, count)

    def committed_part(self, view: Tensor) -> Tensor:
        """The whole view: on a disk committed rows aren't contiguous."""
        return view.view(-1) if self._length else view.view(-1)[:0]

    def reserved_rows(self, view: Tensor) -> Tensor:
        """The reserved rows of a view."""
        return view[:, :, self._length : self._end]

    def write_back(self) -> None:
        """Copy new rows of the bound layer to the tail, or to the disk if they bypass it."""
        assert self._bound is not None
        (layer, view), self._bound = self._bound, None
        first = self.stored // ROUND_ROWS
        if self._bypasses_tail:
            whole = self._end // ROUND_ROWS
            self._store.write(self.slot, layer, first, as_blocks(view)[:, first:whole])
            self._moved.add(layer)
            first = whole
        _copy_blocks(view, first, self._tail(layer), 0, _num_blocks(self._end) - first)

    def speculative(self, length: int) -> Sequence[SpeculativeRows]:
        """The reserved rows, which are in the tails."""
        if self._bypasses_tail:
            raise EngineError("Decided rows can't be chosen from.")
        return [SpeculativeRows(self.tails, length - self.stored)]

    def commit(self, length: int, num_rows: int) -> None:
        """Keep the first of the reserved rows, and write whole blocks to the disk."""
        if not self._bypasses_tail:
            self._flush_blocks((length + num_rows) // ROUND_ROWS - self.stored // ROUND_ROWS)
            return
        if len(self._moved) < len(self._store.layers):
            raise EngineError("A pass hasn't computed all layers whose cached rows are offloaded.")
        self.stored = self._end // ROUND_ROWS * ROUND_ROWS
        self._bypasses_tail = False
        self._moved.clear()
        self.truncate(length + num_rows)

    def truncate(self, length: int) -> None:
        """Drop rows from `length` on."""
        if length < self.stored:  # the next pass reads the rest of the last block back
            self.stored = length // ROUND_ROWS * ROUND_ROWS
            self._moved.clear()
            self._missing = set(self._store.layers)

    def fill(self, length: int) -> None:
        """Commit rows of zeros, for measurements."""
        self.stored = length // ROUND_ROWS * ROUND_ROWS
        self._moved.clear()
        self._missing.clear()
        for layer in self._store.layers:
            self._tail(layer).zero_()
            heads, _, words = (block := as_blocks(self._tail(layer))[:, :1]).shape
            same = np.broadcast_to(block, (heads, self.stored // ROUND_ROWS, words))
            self._store.write(self.slot, layer, 0, same)

    def read(self, layer: int, first: int, length: int) -> Tensor:
        """Copy committed rows from disk and tail; see `OffloadedKv`."""
        tail = self._tail(layer)
        on_disk = layer in self._moved or layer in self._missing
        stored = whole_blocks(length) if on_disk else self.stored
        count = whole_blocks(length - first)
        found = tail.new_empty(*tail.shape[:2], count, tail.shape[3])
        num_read = max(0, stored - first)
        self._store.read(
            self.slot, layer, first // ROUND_ROWS, as_blocks(found)[:, : num_read // ROUND_ROWS]
        )
        found[:, :, num_read:] = tail[:, :, max(0, first - stored) :][:, :, : count - num_read]
        return found

    def _tail(self, layer: int) -> Tensor:
        """[2, kv heads, slots, width]"""
        region = self._store.region(layer)
        return self.tails[region.part][region.place]

    def _restore_tails(self, length: int) -> None:
        """Read blocks back that a failed pass or a truncation has left on the disk alone."""
        if length == self.stored:  # the tail is empty
            self._missing.clear()
        else:
            self._missing |= self._moved
        self._moved.clear()
        self._bypasses_tail = False
        for layer in sorted(self._missing):
            self._store.read(
                self.slot, layer, self.stored // ROUND_ROWS, as_blocks(self._tail(layer))[:, :1]
            )
            self._missing.discard(layer)

    def _flush_blocks(self, count: int) -> None:
        """Write the first blocks of the tails to the disk, and move the others to the front."""
        if not count:
            return
        for layer in self._store.layers:
            block = as_blocks(self._tail(layer))[:, :count]
            self._store.write(self.slot, layer, self.stored // ROUND_ROWS, block)
        rows = count * ROUND_ROWS
        for tail in self.tails:
            kept = tail[:, :, :, rows:].clone()
            tail[:, :, :, : kept.shape[3]] = kept
        self.stored += rows


def as_blocks(rows: Tensor) -> KvBlocks:
    """View the rows of a layer as blocks.

    Args:
        rows: Contiguous, on a CPU. [2, kv heads, slots, width]

    Returns:
        [heads, blocks, words]
    """
    two, num_kv, slots, width = rows.shape
    heads = rows.view(torch.uint8).numpy()
    size = ROUND_ROWS * width * rows.itemsize
    return heads.reshape(two * num_kv, slots // ROUND_ROWS, size).view(np.uint64)


def _copy_blocks(source: Tensor, first: int, into: Tensor, at: int, count: int) -> None:
    """Copy blocks of a layer with numpy, on one thread: waking torch's threads takes longer.

    Args:
        source: [2, kv heads, slots, width]
        first: First block in the source.
        into: Destination, of the same shape but for its slots.
        at: First block in the destination.
        count: Number of blocks.
    """
    as_blocks(into)[:, at : at + count] = as_blocks(source)[:, first : first + count]


def _num_blocks(num_rows: int) -> int:
    """Number of blocks that hold `num_rows` rows."""
    return -(-num_rows // ROUND_ROWS)
