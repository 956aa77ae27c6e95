"""Prefetching of KV rows from main memory to a GPU, two layers ahead, and of new rows back.

Both run on CUDA streams of their own, in parallel with computing. Rows on a disk are sent on as
soon as they have been read into memory.

Source: Sheng et al., "FlexGen" (2023), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.kv.offloaded.prefetcher import (
    HostPrefetcher,
    KvPrefetcher,
    KvTransfers,
    LayerKv,
    buffer_bytes,
    not_announced,
)
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import RING_UNITS, region_bytes
from medusa_core.system import cuda


class _Sent(NamedTuple):
    """Rows on their way to the GPU.

    Attributes:
        views: Rows of each cache, on the GPU. [2, kv heads, slots, width]
        arrived: Event after the last copy; if nothing is copied, the one that frees the buffer.
    """

    views: Sequence[Tensor]
    arrived: cuda.CudaEvent


class GpuPrefetcher(KvPrefetcher):
    """Copies rows that a host prefetcher has in memory; see the module."""

    def __init__(self, host: HostPrefetcher, store: KvStore, device: torch.device) -> None:
        """Create the streams.

        Args:
            host: Makes the rows available in main memory.
            store: Store of the rows.
            device: The GPU.
        """
        self._host = host
        self._store = store
        self._device = device
        self._up, self._down = cuda.copy_stream(device), cuda.copy_stream(device)
        self._buffers: list[Tensor] = []
        self._freed: list[cuda.CudaEvent] = []  # after which each buffer is free
        self._order: Sequence[LayerKv] = ()
        self._sent: list[_Sent] = []
        self._num_acquired = 0
        self._in_memory: list[Tensor] = []  # views of the acquired rows
        self._read_bytes = self._written_bytes = 0

    @property
    def transfers(self) -> KvTransfers:
        """Bytes that were copied so far, and seconds of copies or of the disk's reads."""
        host = self._host.transfers
        return KvTransfers(
            self._read_bytes,
            max(self._up.copied_s, host.read_s),
            self._written_bytes,
            self._down.copied_s + host.written_s,
        )

    @property
    def waited_s(self) -> float:
        """Seconds that the GPU has waited for rows so far."""
        return self._up.waited_s  # includes waiting for a disk

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers on the GPU."""
        return sum(buffer.nbytes for buffer in self._buffers)

    @property
    def host_bytes(self) -> int:
        """Bytes of the buffers in main memory."""
        return self._host.host_bytes

    def begin(self, order: Sequence[LayerKv]) -> None:
        """Begin to copy the rows of a pass; see `KvPrefetcher`."""
        self._store.wait_for_copies()
        self._host.begin(order)
        self._allocate(buffer_bytes(order, self._store))
        self._freed = [
            self._up.record_event()
        ] * RING_UNITS  # a pass that failed may still use them
        self._order, self._sent, self._num_acquired = order, [], 0
        self._send_ahead()

    def acquire(self, rows: LayerKv) -> None:
        """Make the compute stream wait for rows, and bind them; see `KvPrefetcher`."""
        index = self._num_acquired
        if index >= len(self._order) or rows != self._order[index]:
            raise not_announced()
        computed = self._up.record_event()
        self._host.acquire(rows)
        if len(self._sent) == index:
            self._send(rows, [each.view(rows.layer) for each in rows.rows])
        self._num_acquired += 1
        self._send_ahead()
        sent = self._sent[index]
        self._up.wait(sent.arrived, computed)
        self._in_memory = []
        for each, view in zip(rows.rows, sent.views, strict=True):
            self._in_memory.append(each.view(rows.layer))
            each.bind(rows.layer, view)

    def release(self) -> None:
        """Copy new rows back to main memory; see `KvPrefetcher`."""
        index, computed = self._num_acquired - 1, self._up.record_event()
        acquired, views = self._order[index], self._sent[index].views
        for rows, view, to in zip(acquired.rows, views, self._in_memory, strict=True):
            down = self._down.copy(rows.reserved_rows(to), rows.reserved_rows(view), computed)
            self._written_bytes += rows.reserved_rows(to).nbytes
            rows.bind(acquired.layer, to)
        self._freed[index % RING_UNITS] = down
        self._store.defer_copies(partial(self._down.synchronize, down))
        self._sent[index] = _Sent((), down)  # drops the views
        self._host.release()

    def _send_ahead(self) -> None:
        """Send what is in memory while there are free buffers."""
        most = min(len(self._order), max(0, self._num_acquired - 1) + RING_UNITS)
        while len(self._sent) < most:
            index = len(self._sent)
            if (views := self._host.prefetched(index)) is None:
                return
            self._send(self._order[index], views)

    def _send(self, wanted: LayerKv, views: Sequence[Tensor]) -> None:
        """Copy the next rows of the order into their buffer.

        Args:
            wanted: The rows.
            views: Rows of each cache in memory. [2, kv heads, slots, width]
        """
        index = len(self._sent) % RING_UNITS
        buffer, start, there = self._buffers[index], 0, list[Tensor]()
        arrived = self._freed[index]
        for rows, view in zip(wanted.rows, views, strict=True):
            copy = _with_layout(view, buffer[start : start + view.nbytes])
            start += region_bytes(view.nbytes, 1)
            there.append(copy)
            source = rows.committed_part(view)
            if len(source):
                arrived = self._up.copy(rows.committed_part(copy), source, self._freed[index])
                self._read_bytes += source.nbytes
        self._sent.append(_Sent(there, arrived))

    def _allocate(self, size: int) -> None:
        """Make buffers of `size` or more bytes, after copies of a failed pass."""
        if not self._buffers or len(self._buffers[0]) < size:
            for sent in self._sent:  # copies of a pass that failed may be under way
                self._up.synchronize(sent.arrived)
            self._buffers.clear()
            self._buffers += [
                torch.empty(size, dtype=torch.uint8, device=self._device) for _ in range(RING_UNITS)
            ]


def _with_layout(view: Tensor, buffer: Tensor) -> Tensor:
    """View a buffer with the dtype, shape and strides of another view."""
    return buffer.view(view.dtype).as_strided(view.shape, view.stride())
