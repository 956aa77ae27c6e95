"""Layers brought from below in the order in which they are needed, always some ahead.

The order is a circle: behind the last layer of a pass come the first ones of the next pass, which
are read while scores are computed and drafts are made.

    take(a)   the buffer of a, waiting for it if need be; the one taken before is given back
    take(b)   ...

A read that fails is told by `take`; the stream goes on with whatever is taken next.
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
        read_s: Seconds that this took.
    """

    def __init__(self, offloaded: OffloadedLayers, buffers: Sequence[Tensor]) -> None:
        self.read_bytes, self.read_s = 0, 0.0
        self._offloaded = offloaded
        self._views = [buffer.numpy().data for buffer in buffers]

    def read(self, layer: int, place: int) -> None:
        """Read a layer into a buffer."""
        started = time.perf_counter()
        self._offloaded.source_of(layer).read(layer, self._views[place])
        self.read_s += time.perf_counter() - started
        self.read_bytes += self._offloaded.entry(layer).nbytes


class LayerStream:
    """Brings layers; see the module.

    Attributes:
        order: Layers of a pass.
        buffers: Where they are brought. uint8 [bytes]
    """

    def __init__(
        self,
        offloaded: OffloadedLayers,
        order: Sequence[int],
        new_buffer: Callable[[int], Tensor],
        num_buffers: int = NUM_BUFFERS,
    ) -> None:
        """Begin to read.

        Args:
            offloaded: The layers.
            order: Those that are brought, in the order of a pass.
            new_buffer: Makes a buffer of so many bytes, aligned to 4096.
            num_buffers: Of how many the ring is made.
        """
        size = offloaded.piece_bytes
        self.order = tuple(order)
        self.buffers = tuple(new_buffer(size) for _ in range(num_buffers))
        self._reader = _Reader(offloaded, self.buffers)
        self._ahead = ReadAhead(self._reader.read, num_buffers, "medusa-layers")
        self._ahead.begin(self.order, is_circle=True)

    @property
    def waited_s(self) -> float:
        """Seconds that `take` has waited so far."""
        return self._ahead.waited_s

    @property
    def read_bytes(self) -> int:
        """Bytes that were read so far."""
        return self._reader.read_bytes

    @property
    def read_s(self) -> float:
        """Seconds that this took, beside computing or not."""
        return self._reader.read_s

    def is_ready(self, layer: int) -> bool:
        """Could a layer be taken without waiting?"""
        return self._next == layer and self._ahead.num_read > self._ahead.num_entered

    def take(self, layer: int) -> int:
        """Wait for a layer; the buffer taken before is given back.

        Args:
            layer: The next one of the order; any other begins anew there.

        Returns:
            The number of its buffer.

        Raises:
            TierError: It can't be read. Another try reads it again.
        """
        self._ahead.leave()
        if self._next != layer:
            self._ahead.begin(self.order, first=self.order.index(layer), is_circle=True)
        return self._ahead.enter()

    @property
    def _next(self) -> int:
        return self.order[self._ahead.num_entered % len(self.order)]
