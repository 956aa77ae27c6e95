"""Layers brought from below in the order in which they are needed, always some ahead.

A thread reads them into a ring of buffers: while one layer is computed, the next two are on their
way. The order is a circle: behind the last layer of a pass come the first ones of the next pass,
which are read while scores are computed and drafts are made.

    take(a)   the buffer of a, waiting for it if need be; the one taken before is given back
    take(b)   ...

A read that fails is told by `take`; the stream goes on with whatever is taken next.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence

from torch import Tensor

from medusa_core.errors import EngineError, MedusaError
from medusa_core.runtime.offload.linear import OffloadedLayers

_PATIENCE_S = 5.0  # for a read that is under way
NUM_BUFFERS = 3  # one that is computed with, two ahead


class _Ring:
    """What the thread and the runner share.

    Counts run on over all passes: the n-th read is of the layer `order[n % len(order)]`, and goes
    into the buffer `n % len(buffers)`.

    Attributes:
        order: Layers of a pass.
        buffers: Their buffers. uint8 [bytes]
        bell: Rung at each change.
        num_read: Reads that have ended.
        num_taken: Reads that were taken; the last one is in use.
        turn: Goes up when reads begin anew elsewhere: what a read of an older turn brings is void.
        error: Why the last read failed.
        is_closed: Nobody takes any more.
        brought_bytes: Bytes that were read.
        brought_s: Seconds that this took.
    """

    def __init__(self, order: Sequence[int], buffers: Sequence[Tensor]) -> None:
        self.order = tuple(order)
        self.buffers = tuple(buffers)
        self.bell = threading.Condition()
        self.num_read = self.num_taken = self.turn = 0
        self.error: MedusaError | None = None
        self.is_closed = False
        self.brought_bytes = 0
        self.brought_s = 0.0

    @property
    def may_read(self) -> bool:
        """Is there a buffer that nobody needs?"""
        in_use = max(0, self.num_taken - 1)
        return self.error is None and self.num_read < in_use + len(self.buffers)


class LayerStream:
    """Brings layers; see the module.

    Attributes:
        order: Layers of a pass.
        buffers: Where they are brought. uint8 [bytes]
        waited_s: Seconds that `take` has waited so far.
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
        self.waited_s = 0.0
        self._ring = _Ring(order, [new_buffer(size) for _ in range(num_buffers)])
        reader = threading.Thread(
            target=_read_on, args=(self._ring, offloaded), name="medusa-layers", daemon=True
        )
        reader.start()
        weakref.finalize(self, _close, self._ring, reader)

    @property
    def order(self) -> tuple[int, ...]:
        return self._ring.order

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        return self._ring.buffers

    @property
    def brought_bytes(self) -> int:
        """Bytes that were brought so far."""
        return self._ring.brought_bytes

    @property
    def brought_s(self) -> float:
        """Seconds that this took, beside computing or not."""
        return self._ring.brought_s

    def is_ready(self, layer: int) -> bool:
        """Could a layer be taken without waiting?"""
        ring = self._ring
        is_next = ring.order[ring.num_taken % len(ring.order)] == layer
        return is_next and ring.num_read > ring.num_taken

    def take(self, layer: int) -> int:
        """Wait for a layer; the buffer taken before is given back.

        Args:
            layer: The next one of the order; any other begins anew there.

        Returns:
            The number of its buffer.

        Raises:
            TierError: It can't be read. Another try reads it again.
        """
        ring, started = self._ring, time.perf_counter()
        with ring.bell:
            if ring.order[ring.num_taken % len(ring.order)] != layer:
                self._begin_at(layer)
            place = ring.num_taken
            ring.num_taken += 1  # gives the one before back
            ring.bell.notify_all()
            while ring.num_read <= place and ring.error is None:
                ring.bell.wait()
            if ring.num_read <= place and ring.error is not None:
                error = ring.error
                self._begin_at(layer)
                try:
                    raise error
                finally:
                    del error  # its traceback holds this frame, and so the model
        self.waited_s += time.perf_counter() - started
        return place % len(ring.buffers)

    def _begin_at(self, layer: int) -> None:
        """Forget what was read ahead."""
        ring = self._ring
        ring.turn += 1
        ring.num_read = ring.num_taken = ring.order.index(layer)
        ring.error = None
        ring.bell.notify_all()


def _read_on(ring: _Ring, offloaded: OffloadedLayers) -> None:
    """The thread's work."""
    views = [buffer.numpy().data for buffer in ring.buffers]
    while True:
        with ring.bell:
            while not (ring.may_read or ring.is_closed):
                ring.bell.wait()
            if ring.is_closed:
                return
            count, turn = ring.num_read, ring.turn
        layer = ring.order[count % len(ring.order)]
        started = time.perf_counter()
        error = _read(offloaded, layer, views[count % len(views)])
        with ring.bell:
            ring.brought_s += time.perf_counter() - started
            ring.brought_bytes += 0 if error else offloaded.entry(layer).nbytes
            if turn != ring.turn:
                continue
            ring.error = error
            ring.num_read += error is None
            ring.bell.notify_all()
        error = None  # whoever raises it gives it a traceback, which holds the model


def _read(offloaded: OffloadedLayers, layer: int, into: memoryview) -> MedusaError | None:
    """Bring a layer; returns why it can't be brought."""
    try:
        offloaded.source_of(layer).read(layer, into)
    except MedusaError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the runner must hear of it, else it waits for ever
        return EngineError(f"Layer {layer} can't be brought: {error}.", "Load the model again.")
    return None


def _close(ring: _Ring, reader: threading.Thread) -> None:
    with ring.bell:
        ring.is_closed = True
        ring.bell.notify_all()
    if reader is not threading.current_thread():  # whichever thread collects the garbage
        reader.join(_PATIENCE_S)
