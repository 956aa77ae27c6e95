"""Cached rows on a disk, visited in memory.

A thread reads into a ring of buffers: while one unit is computed, the next two are on their way.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError, MedusaError
from medusa_core.runtime.kv.offloaded.block_rows import BlockRows
from medusa_core.runtime.kv.offloaded.block_store import BlockStore
from medusa_core.runtime.kv.offloaded.blocks import RowBlocks, as_blocks
from medusa_core.runtime.kv.offloaded.unit import RowUnit
from medusa_core.runtime.kv.offloaded.visits import HostVisits, rows_of_unit
from medusa_core.runtime.kv.size import RING_UNITS, ROUND_ROWS, region_bytes
from medusa_core.runtime.offload.memory import page_buffer
from medusa_core.system import cuda

_PATIENCE_S = 5.0  # for a read that is under way


class _Piece(NamedTuple):
    """A session's stored rows of a layer, and where they go.

    Attributes:
        slot: Its number in the store.
        layer: Which layer.
        into: A part of a buffer. [heads, blocks, words]
    """

    slot: int
    layer: int
    into: RowBlocks


class _Ring:
    """What the thread and the runner share.

    Attributes:
        units: Of each unit of the pass what is to be read.
        bell: Rung at each change.
        num_read: Units that were read.
        num_left: Units that the pass has left: their buffers may be taken.
        turn: Goes up with each pass: what a read of an older one brings is void.
        error: Why the last read failed.
        is_closed: Nobody enters any more.
        read_bytes: Bytes that were read.
        read_s: Seconds in which the disk was read.
        copied_s: Seconds in which rows were laid out.
    """

    def __init__(self) -> None:
        self.units: Sequence[Sequence[_Piece]] = ()
        self.bell = threading.Condition()
        self.num_read = self.num_left = self.turn = 0
        self.error: MedusaError | None = None
        self.is_closed = False
        self.read_bytes, self.read_s, self.copied_s = 0, 0.0, 0.0

    @property
    def may_read(self) -> bool:
        """Is there a unit to be read, and a buffer that nobody needs?"""
        most = min(len(self.units), self.num_left + RING_UNITS)
        return self.error is None and self.num_read < most


class DiskVisits(HostVisits):
    """Brings units; see the module.

    Those of another device come through pinned memory.
    """

    def __init__(self, store: BlockStore, device: torch.device) -> None:
        """Begin a thread that reads.

        Args:
            store: Where the rows lie.
            device: Where they are computed with.
        """
        self._waited_s = 0.0
        self._store = store
        self._is_here = device.type == "cpu"
        self._buffers: list[Tensor] = []
        self._units: Sequence[RowUnit] = ()
        self._views: list[list[Tensor]] = []
        self._num_entered = 0
        self._ring = _Ring()
        reader = threading.Thread(
            target=_read_on, args=(self._ring, store), name="medusa-rows", daemon=True
        )
        reader.start()
        weakref.finalize(self, _close, self._ring, reader)

    @property
    def waited_s(self) -> float:
        return self._waited_s

    @property
    def nbytes(self) -> int:
        return self._ring_bytes if self._is_here else 0

    @property
    def host_bytes(self) -> int:
        return 0 if self._is_here else self._ring_bytes

    @property
    def _ring_bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers)

    @property
    def read_bytes(self) -> int:
        return self._ring.read_bytes

    @property
    def read_s(self) -> float:
        return self._ring.read_s

    @property
    def copied_s(self) -> float:
        return self._ring.copied_s

    @property
    def written_bytes(self) -> int:
        return self._store.written_bytes

    @property
    def written_s(self) -> float:
        return self._store.written_s

    def begin(self, units: Sequence[RowUnit]) -> None:
        self._forget()
        ring = self._ring
        self._make_room(units)
        self._views = [self._views_of(unit, count) for count, unit in enumerate(units)]
        pieces = [
            [
                _Piece(rows.slot, unit.layer, as_blocks(view)[:, : rows.stored // ROUND_ROWS])
                for rows, view in zip(_rows_in(unit), views, strict=True)
            ]
            for unit, views in zip(units, self._views, strict=True)
        ]
        self._units, self._num_entered = units, 0
        with ring.bell:
            ring.turn += 1
            ring.units, ring.error = pieces, None
            ring.num_read = ring.num_left = 0
            ring.bell.notify_all()

    def enter(self, unit: RowUnit) -> None:
        ring, place, started = self._ring, self._num_entered, time.perf_counter()
        if place >= len(self._units) or unit != self._units[place] or place != ring.num_left:
            raise EngineError("A pass came to cached rows that it hadn't told of.")
        with ring.bell:
            while ring.num_read <= place and ring.error is None:
                ring.bell.wait()
            error = None
            if ring.num_read <= place:
                error, ring.error = ring.error, None  # it is read again meanwhile
                ring.bell.notify_all()
        self._waited_s += time.perf_counter() - started
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame, and so the model
        self._num_entered += 1
        for rows, view in zip(_rows_in(unit), self._views[place], strict=True):
            rows.complete(unit.layer, view)
            rows.show(unit.layer, view)

    def ahead(self, place: int) -> Sequence[Tensor] | None:
        with self._ring.bell:
            if self._ring.num_read <= place:
                return None
        unit, views = self._units[place], self._views[place]
        for rows, view in zip(_rows_in(unit), views, strict=True):
            rows.complete(unit.layer, view)
        return views

    def leave(self) -> None:
        self._store.settle()
        for rows in _rows_in(self._units[self._num_entered - 1]):
            rows.leave()
        ring = self._ring
        with ring.bell:
            ring.num_left += 1
            ring.bell.notify_all()
        if ring.num_left == len(self._units):
            self._forget()

    def _forget(self) -> None:
        """Hold no caches."""
        self._units, self._views = (), []

    def _make_room(self, units: Sequence[RowUnit]) -> None:
        """Buffers for whole contexts: a processor takes pages as they are used."""
        sizes = (
            len(unit.caches) * region_bytes(self._store.row_bytes(unit.layer), self._store.num_rows)
            for unit in units
        )
        size = max(sizes, default=0)
        if not self._buffers or len(self._buffers[0]) < size:
            self._buffers.clear()
            self._buffers += [
                page_buffer(size, None if self._is_here else cuda.pinned) for _ in range(RING_UNITS)
            ]

    def _views_of(self, unit: RowUnit, count: int) -> list[Tensor]:
        """Of each cache all rows of the layer, in a buffer. [2, kv heads, slots, width]"""
        buffer, start, views = self._buffers[count % RING_UNITS], 0, []
        for rows in _rows_in(unit):
            views.append(rows.view_in(buffer[start:], unit.layer))
            start += region_bytes(views[-1].nbytes, 1)
        return views


def _rows_in(unit: RowUnit) -> list[BlockRows]:
    found = rows_of_unit(unit)
    return [rows for rows in found if isinstance(rows, BlockRows)]  # a disk has no others


def _read_on(ring: _Ring, store: BlockStore) -> None:
    """The thread's work."""
    staging: RowBlocks | None = None
    while True:
        with ring.bell:
            while not (ring.may_read or ring.is_closed):
                ring.bell.wait()
            if ring.is_closed:
                return
            pieces, turn = ring.units[ring.num_read], ring.turn
        if staging is None:
            staging = store.new_staging()
        error, began, read_s = None, time.perf_counter(), 0.0
        try:
            for piece in pieces:
                read_s += store.read(piece.slot, piece.layer, 0, piece.into, staging)
        except MedusaError as failed:
            error = failed
        except Exception as failed:  # noqa: BLE001 - the runner must hear of it, else it waits for ever
            error = EngineError(f"Cached rows can't be brought: {failed}.", "Load the model again.")
        ring.read_s += read_s
        ring.copied_s += time.perf_counter() - began - read_s
        ring.read_bytes += 0 if error else sum(piece.into.nbytes for piece in pieces)
        del pieces
        with ring.bell:
            if turn == ring.turn:
                ring.error = error
                ring.num_read += error is None
                ring.bell.notify_all()
        error = None  # whoever raises it gives it a traceback, which holds the model


def _close(ring: _Ring, reader: threading.Thread) -> None:
    with ring.bell:
        ring.is_closed = True
        ring.bell.notify_all()
    if reader is not threading.current_thread():  # whichever thread collects the garbage
        reader.join(_PATIENCE_S)
