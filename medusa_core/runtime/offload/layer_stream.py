"""Reads layers into a ring of buffers in main memory, in the order of a pass and ahead of it.

The order is circular: after the last layer of a pass, the first ones of the next pass are read
while logits are computed and drafts are made.

    acquire(a)   waits for layer a and returns its buffer; releases the one before
    acquire(b)   …

`acquire` raises the error of a failed read; the stream goes on with whatever is acquired next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from torch import Tensor

from medusa_core.runtime.offload.layer_entries import NUM_BUFFERS
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.offload.read_ahead import ReadAhead


class _Reader:
    """Reads layers, in the stream's thread.

    Attributes:
        read_bytes: Bytes that were read.
        read_s: Seconds of reading.
    """

    def __init__(self, offloaded: OffloadedLayers, buffers: Sequence[Tensor]) -> None:
        self.read_bytes, self.read_s = 0, 0.0
        self._offloaded = offloaded
        self._views = [buffer.numpy().data for buffer in buffers]

    def read(self, layer: int, index: int) -> None:
        """Read a layer into the buffer of that index."""
        started = time.perf_counter()
        self._offloaded.source_of(layer).read(layer, self._views[index])
        self.read_s += time.perf_counter() - started
        self.read_bytes += self._offloaded.entry(layer).nbytes


class LayerStream:
    """A stream of layers; see the module.

    Attributes:
        order: Indices of the layers of a pass.
        buffers: Memory of the layers. uint8 [bytes]
    """

    def __init__(
        self,
        offloaded: OffloadedLayers,
        order: Sequence[int],
        new_buffer: Callable[[int], Tensor],
        num_buffers: int = NUM_BUFFERS,
    ) -> None:
        """Start reading.

        Args:
            offloaded: The layers.
            order: Indices of layers, in the order of a pass.
            new_buffer: Allocates a number of bytes, aligned to 4096.
            num_buffers: Buffers of the ring.
        """
        size = offloaded.piece_bytes
        self.order = tuple(order)
        self.buffers = tuple(new_buffer(size) for _ in range(num_buffers))
        self._reader = _Reader(offloaded, self.buffers)
        self._ahead = ReadAhead(self._reader.read, num_buffers, "medusa-layers")
        self._ahead.begin(self.order, is_circle=True)

    @property
    def waited_s(self) -> float:
        """Seconds that `acquire` has waited so far."""
        return self._ahead.waited_s

    @property
    def read_bytes(self) -> int:
        """Bytes that were read so far."""
        return self._reader.read_bytes

    @property
    def read_s(self) -> float:
        """Seconds of reading, in parallel with computing or not."""
        return self._reader.read_s

    def is_ready(self, layer: int) -> bool:
        """Whether `acquire` wouldn't wait."""
        return self._next == layer and self._ahead.num_read > self._ahead.num_acquired

    def acquire(self, layer: int) -> int:
        """Wait for a layer, and release the one before.

        Args:
            layer: The next one of the order; any other restarts the order there.

        Returns:
            Index of its buffer.

        Raises:
            TierError: It can't be read. Another try reads it again.
        """
        self._ahead.release()
        if self._next != layer:
            self._ahead.begin(self.order, first=self.order.index(layer), is_circle=True)
        return self._ahead.acquire()

    @property
    def _next(self) -> int:
        """The next layer of the order."""
        return self.order[self._ahead.num_acquired % len(self.order)]
