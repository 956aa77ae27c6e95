"""Layers brought to a card: from pinned memory by a stream of their own, two ahead.

Those that lie on a disk come by pinned buffers in between, which a thread fills.
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


class CudaLayers:
    """Brings layers to a card; `take` and `buffers` are as `LayerStream` has them.

    Attributes:
        buffers: Where they are brought, on the card. uint8 [bytes]
        waited_s: Seconds that the card has waited so far, as far as it has come with its work.
    """

    def __init__(
        self, offloaded: OffloadedLayers, order: Sequence[int], device: torch.device
    ) -> None:
        """Take the buffers.

        Args:
            offloaded: The layers.
            order: Those that are brought, in the order of a pass.
            device: The card.
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
        self._aside = cuda.aside(device)
        self._num_taken = self._num_sent = 0  # they run on over all passes
        self._sent: list[cuda.CudaEvent | None] = [None] * NUM_BUFFERS
        self._used: list[cuda.CudaEvent | None] = [None] * NUM_BUFFERS
        self._last_from_disk: cuda.CudaEvent | None = None
        self._read_bytes = 0

    def take(self, layer: int) -> int:
        """Let what the card computes next wait for a layer; see `LayerStream.take`."""
        left = self._aside.mark()  # when the card has left the layer before
        if self._num_taken:
            self._used[(self._num_taken - 1) % NUM_BUFFERS] = left
        if self._order[self._num_taken % len(self._order)] != layer:
            self._num_taken = self._num_sent = self._order.index(layer)
        if self._num_sent == self._num_taken:
            self._send()
        place = self._num_taken % NUM_BUFFERS
        self._num_taken += 1
        self._send_ahead()
        sent = self._sent[place]
        assert sent is not None  # it was sent now or before
        self._aside.wait(sent, left)
        return place

    @property
    def waited_s(self) -> float:
        return self._aside.waited_s

    @property
    def read_bytes(self) -> int:
        """Bytes that were read so far."""
        return self._read_bytes

    @property
    def read_s(self) -> float:
        """Seconds of copies, or of a disk that was read beside them, whichever took longer."""
        return max(self._aside.copied_s, 0.0 if self._disk is None else self._disk.read_s)

    def _send_ahead(self) -> None:
        """Send what is ready, as long as there is a buffer that nobody needs."""
        while self._num_sent < self._num_taken - 1 + NUM_BUFFERS:
            layer = self._order[self._num_sent % len(self._order)]
            is_here = layer in self._pieces
            if not is_here and (self._disk is None or not self._disk.is_ready(layer)):
                return
            self._send()

    def _send(self) -> None:
        """Send the next layer of the order into its buffer."""
        layer, place = self._order[self._num_sent % len(self._order)], self._num_sent % NUM_BUFFERS
        piece = self._piece(layer)
        to = self.buffers[place][: len(piece)]
        self._sent[place] = self._aside.copy(to, piece, self._used[place])
        self._read_bytes += len(piece)
        if layer not in self._pieces:
            self._last_from_disk = self._sent[place]
        self._num_sent += 1

    def _piece(self, layer: int) -> Tensor:
        """A layer in pinned memory."""
        if layer in self._pieces:
            return self._pieces[layer]
        assert self._disk is not None  # it lies there
        if self._last_from_disk is not None:  # its buffer is given back now
            self._aside.finish(self._last_from_disk)
        return self._disk.buffers[self._disk.take(layer)]


def _pinned_buffer(num_bytes: int) -> Tensor:
    return page_buffer(num_bytes, cuda.pinned)
