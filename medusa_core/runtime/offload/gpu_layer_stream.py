"""Copies layers to a GPU on a separate CUDA stream, two layers ahead of computing.

Layers in pinned memory are copied directly; a thread first reads those of a disk into pinned
buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.runtime.offload.layer_entries import NUM_BUFFERS
from medusa_core.runtime.offload.layer_stream import LayerStream
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.offload.memory import (
    MemoryLayers,
    page_buffer,
)
from medusa_core.system import cuda


class GpuLayerStream:
    """Counterpart of `LayerStream` for a GPU.

    Attributes:
        buffers: Buffers on the GPU. uint8 [bytes]
    """

    def __init__(
        self, offloaded: OffloadedLayers, order: Sequence[int], device: torch.device
    ) -> None:
        """Allocate the buffers.

        Args:
            offloaded: The layers.
            order: Indices of layers, in the order of a pass.
            device: The GPU.
        """
        size = offloaded.piece_bytes
        self.buffers = tuple(
            torch.empty(size, dtype=torch.uint8, device=device) for _ in range(NUM_BUFFERS)
        )
        self._order = tuple(order)
        self._pieces: dict[int, Tensor] = {}
        for source in offloaded.sources:
            if isinstance(source, MemoryLayers):
                self._pieces |= source.pieces
        from_disk = [layer for layer in self._order if layer not in self._pieces]
        self._disk = LayerStream(offloaded, from_disk, _pinned_buffer) if from_disk else None
        self._copies = cuda.copy_stream(device)
        # Counts over all passes; a layer's buffer is its count modulo NUM_BUFFERS.
        self._num_acquired = self._num_sent = 0
        self._sent: list[cuda.CudaEvent | None] = [None] * NUM_BUFFERS
        self._used: list[cuda.CudaEvent | None] = [None] * NUM_BUFFERS
        self._last_from_disk: cuda.CudaEvent | None = None
        self._read_bytes = 0

    def acquire(self, layer: int) -> int:
        """Make the compute stream wait for a layer; see `LayerStream.acquire`."""
        computed = self._copies.record_event()  # the end of the layer before
        if self._num_acquired:
            self._used[(self._num_acquired - 1) % NUM_BUFFERS] = computed
        if self._order[self._num_acquired % len(self._order)] != layer:
            self._num_acquired = self._num_sent = self._order.index(layer)
        if self._num_sent == self._num_acquired:
            self._send()
        index = self._num_acquired % NUM_BUFFERS
        self._num_acquired += 1
        self._send_ahead()
        sent = self._sent[index]
        assert sent is not None  # it was sent now or before
        self._copies.wait(sent, computed)
        return index

    @property
    def waited_s(self) -> float:
        """Seconds that the compute stream has waited so far."""
        return self._copies.waited_s

    @property
    def read_bytes(self) -> int:
        """Bytes that were copied so far."""
        return self._read_bytes

    @property
    def read_s(self) -> float:
        """Seconds of copying, or of reading the disk at the same time if that took longer."""
        return max(self._copies.copied_s, 0.0 if self._disk is None else self._disk.read_s)

    def _send_ahead(self) -> None:
        """Send layers that are in memory while there are free buffers."""
        while self._num_sent < self._num_acquired - 1 + NUM_BUFFERS:
            layer = self._order[self._num_sent % len(self._order)]
            if layer not in self._pieces and not (self._disk and self._disk.is_ready(layer)):
                return
            self._send()

    def _send(self) -> None:
        """Copy the next layer of the order into its buffer."""
        layer, index = self._order[self._num_sent % len(self._order)], self._num_sent % NUM_BUFFERS
        piece = self._piece(layer)
        to = self.buffers[index][: len(piece)]
        self._sent[index] = self._copies.copy(to, piece, self._used[index])
        self._read_bytes += len(piece)
        if layer not in self._pieces:
            self._last_from_disk = self._sent[index]
        self._num_sent += 1

    def _piece(self, layer: int) -> Tensor:
        """Return a layer in pinned memory, after reading it if necessary."""
        if layer in self._pieces:
            return self._pieces[layer]
        assert self._disk is not None  # the layer is there
        if self._last_from_disk is not None:  # `acquire` frees that layer's pinned buffer
            self._copies.synchronize(self._last_from_disk)
        return self._disk.buffers[self._disk.acquire(layer)]


def _pinned_buffer(num_bytes: int) -> Tensor:
    """Allocate pinned, page-aligned memory."""
    return page_buffer(num_bytes, cuda.pinned)
