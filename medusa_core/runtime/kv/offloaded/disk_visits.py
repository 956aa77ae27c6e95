"""Cached rows on a disk, visited in memory.

They are read into a ring of buffers: while one unit is computed, the next two are on their way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.runtime.kv.offloaded.block_rows import BlockRows
from medusa_core.runtime.kv.offloaded.block_store import BlockStore
from medusa_core.runtime.kv.offloaded.blocks import RowBlocks, as_blocks
from medusa_core.runtime.kv.offloaded.unit import RowUnit
from medusa_core.runtime.kv.offloaded.visits import HostVisits, rows_of_unit
from medusa_core.runtime.kv.size import RING_UNITS, ROUND_ROWS, region_bytes
from medusa_core.runtime.offload.memory import page_buffer
from medusa_core.runtime.offload.read_ahead import ReadAhead
from medusa_core.system import cuda


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


class _Reader:
    """Reads units, in a thread of its own.

    Attributes:
        read_bytes: Bytes that were read.
        read_s: Seconds in which the disk was read.
        copied_s: Seconds in which rows were laid out.
    """

    def __init__(self, store: BlockStore) -> None:
        self.read_bytes, self.read_s, self.copied_s = 0, 0.0, 0.0
        self._store = store
        self._staging: RowBlocks | None = None

    def read(self, unit: Sequence[_Piece], _: int) -> None:
        """Read what a unit's caches have stored."""
        if self._staging is None:
            self._staging = self._store.new_staging()
        for piece in unit:
            began = time.perf_counter()
            read_s = self._store.read(piece.slot, piece.layer, 0, piece.into, self._staging)
            self.read_s += read_s
            self.copied_s += time.perf_counter() - began - read_s
            self.read_bytes += piece.into.nbytes


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
        self._store = store
        self._is_here = device.type == "cpu"
        self._buffers: list[Tensor] = []
        self._units: Sequence[RowUnit] = ()
        self._views: list[list[Tensor]] = []
        self._reader = _Reader(store)
        self._ahead = ReadAhead(self._reader.read, RING_UNITS, "medusa-rows")

    @property
    def waited_s(self) -> float:
        return self._ahead.waited_s

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
        return self._reader.read_bytes

    @property
    def read_s(self) -> float:
        return self._reader.read_s

    @property
    def copied_s(self) -> float:
        return self._reader.copied_s

    @property
    def written_bytes(self) -> int:
        return self._store.written_bytes

    @property
    def written_s(self) -> float:
        return self._store.written_s

    def begin(self, units: Sequence[RowUnit]) -> None:
        self._forget()
        self._make_room(units)
        self._views = [self._views_of(unit, count) for count, unit in enumerate(units)]
        pieces = [
            [
                _Piece(rows.slot, unit.layer, as_blocks(view)[:, : rows.stored // ROUND_ROWS])
                for rows, view in zip(_rows_in(unit), views, strict=True)
            ]
            for unit, views in zip(units, self._views, strict=True)
        ]
        self._units = units
        self._ahead.begin(pieces)

    def enter(self, unit: RowUnit) -> None:
        ahead = self._ahead
        place = ahead.num_entered
        if place >= len(self._units) or unit != self._units[place] or place != ahead.num_left:
            raise EngineError("A pass came to cached rows that it hadn't told of.")
        ahead.enter()
        for rows, view in zip(_rows_in(unit), self._views[place], strict=True):
            rows.complete(unit.layer, view)
            rows.show(unit.layer, view)

    def ahead(self, place: int) -> Sequence[Tensor] | None:
        if self._ahead.num_read <= place:
            return None
        unit, views = self._units[place], self._views[place]
        for rows, view in zip(_rows_in(unit), views, strict=True):
            rows.complete(unit.layer, view)
        return views

    def leave(self) -> None:
        self._store.settle()
        ahead = self._ahead
        for rows in _rows_in(self._units[ahead.num_entered - 1]):
            rows.leave()
        ahead.leave()
        if ahead.num_left == len(self._units):
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
