"""Prefetching of KV rows from a disk into a ring of buffers in main memory, two layers ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.kv.offloaded.disk_store import DiskKv, DiskStore, KvBlocks, as_blocks
from medusa_core.runtime.kv.offloaded.prefetcher import (
    HostPrefetcher,
    KvTransfers,
    LayerKv,
    buffer_bytes,
    not_announced,
)
from medusa_core.runtime.kv.size import RING_UNITS, ROUND_ROWS, region_bytes
from medusa_core.runtime.offload.memory import page_buffer
from medusa_core.runtime.offload.read_ahead import ReadAhead
from medusa_core.system import cuda


class _Read(NamedTuple):
    """A read of one session's stored rows in one layer.

    Attributes:
        slot: Slot in the store.
        layer: Index of the layer.
        into: Destination in a buffer. [heads, blocks, words]
    """

    slot: int
    layer: int
    into: KvBlocks


class _Reader:
    """Reads the rows of a batch, in the prefetcher's thread.

    Attributes:
        read_bytes: Bytes that were read.
        read_s: Seconds of reading the disk.
    """

    def __init__(self, store: DiskStore) -> None:
        self.read_bytes, self.read_s = 0, 0.0
        self._store = store
        self._staging: KvBlocks | None = None

    def read(self, batch: Sequence[_Read], _: int) -> None:
        """Read a batch of rows into their views."""
        if self._staging is None:
            self._staging = self._store.new_staging()
        for each in batch:
            self.read_s += self._store.read(each.slot, each.layer, 0, each.into, self._staging)
            self.read_bytes += each.into.nbytes


class DiskPrefetcher(HostPrefetcher):
    """Reads rows in a thread; for a GPU the buffers are pinned memory."""

    def __init__(self, store: DiskStore, device: torch.device) -> None:
        """Start the thread.

        Args:
            store: Store of the rows.
            device: Device that computes.
        """
        self._store = store
        self._on_cpu = device.type == "cpu"
        self._buffers: list[Tensor] = []
        self._order: Sequence[LayerKv] = ()
        self._views: list[list[Tensor]] = []
        self._reader = _Reader(store)
        self._ahead = ReadAhead(self._reader.read, RING_UNITS, "medusa-rows")

    @property
    def transfers(self) -> KvTransfers:
        """Bytes and seconds of reads and writes so far."""
        reader, store = self._reader, self._store
        return KvTransfers(reader.read_bytes, reader.read_s, store.written_bytes, store.written_s)

    @property
    def waited_s(self) -> float:
        """Seconds that passes have waited for the disk so far."""
        return self._ahead.waited_s

    @property
    def nbytes(self) -> int:
        """Bytes of the ring if it is in device memory."""
        return self._ring_bytes if self._on_cpu else 0

    @property
    def host_bytes(self) -> int:
        """Bytes of the ring in host memory; 0 on a CPU, where they count as the device's."""
        return 0 if self._on_cpu else self._ring_bytes

    @property
    def _ring_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self._buffers)

    def begin(self, order: Sequence[LayerKv]) -> None:
        """Begin to read the rows of a pass; see `KvPrefetcher`."""
        self._drop_caches()
        self._allocate(buffer_bytes(order, self._store))
        self._views = [self._views_of(wanted, index) for index, wanted in enumerate(order)]
        reads = [
            [
                _Read(rows.slot, wanted.layer, as_blocks(view)[:, : rows.stored // ROUND_ROWS])
                for rows, view in zip(_rows_of(wanted), views, strict=True)
            ]
            for wanted, views in zip(order, self._views, strict=True)
        ]
        self._order = order
        self._ahead.begin(reads)

    def acquire(self, rows: LayerKv) -> None:
        """Wait for rows, append the tails, and bind them; see `KvPrefetcher`."""
        ahead = self._ahead
        index = ahead.num_acquired
        if index >= len(self._order) or rows != self._order[index] or index != ahead.num_released:
            raise not_announced()
        ahead.acquire()
        for each, view in zip(_rows_of(rows), self._views[index], strict=True):
            each.copy_tail(rows.layer, view)
            each.bind(rows.layer, view)

    def prefetched(self, index: int) -> Sequence[Tensor] | None:
        """Rows that were read but aren't acquired; see `HostPrefetcher`."""
        if self._ahead.num_read <= index:
            return None
        wanted, views = self._order[index], self._views[index]
        for rows, view in zip(_rows_of(wanted), views, strict=True):
            rows.copy_tail(wanted.layer, view)
        return views

    def release(self) -> None:
        """Write new rows back, and free the buffer; see `KvPrefetcher`."""
        self._store.wait_for_copies()
        ahead = self._ahead
        for rows in _rows_of(self._order[ahead.num_acquired - 1]):
            rows.write_back()
        ahead.release()
        if ahead.num_released == len(self._order):
            self._drop_caches()

    def _drop_caches(self) -> None:
        """Forget the pass, so that no closed session's rows are kept."""
        self._order, self._views = (), []

    def _allocate(self, size: int) -> None:
        """Make buffers for whole contexts: a CPU's memory takes pages only when they are used."""
        if not self._buffers or len(self._buffers[0]) < size:
            self._buffers.clear()
            self._buffers += [
                page_buffer(size, None if self._on_cpu else cuda.pinned) for _ in range(RING_UNITS)
            ]

    def _views_of(self, wanted: LayerKv, index: int) -> list[Tensor]:
        """View a buffer as the rows of each cache. [2, kv heads, slots, width]"""
        buffer, start, views = self._buffers[index % RING_UNITS], 0, []
        for rows in _rows_of(wanted):
            views.append(rows.view_in(buffer[start:], wanted.layer))
            start += region_bytes(views[-1].nbytes, 1)
        return views


def _rows_of(wanted: LayerKv) -> list[DiskKv]:
    """The offloaded rows of each cache."""
    return [rows for rows in wanted.rows if isinstance(rows, DiskKv)]  # a target has one store
