"""Cached rows brought to a card, two units ahead, and new ones brought back.

Both run beside computing, each by a stream of its own. What comes from a disk goes on to the card
once it is in memory.

Source: Sheng et al., "FlexGen" (2023), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.kv.offloaded.unit import RowUnit
from medusa_core.runtime.kv.offloaded.visits import HostVisits, RowVisits, rows_of_unit
from medusa_core.runtime.kv.size import RING_UNITS, region_bytes
from medusa_core.system import cuda


class _Sent(NamedTuple):
    """A unit on its way.

    Attributes:
        views: Of each cache its rows, on the card. [2, kv heads, slots, width]
        mark: When they are there, or where nothing is to come their buffer is free.
    """

    views: Sequence[Tensor]
    mark: cuda.CudaEvent


class CardVisits(RowVisits):
    """Brings what is visited in the computer's memory to a card; see `RowVisits`."""

    def __init__(self, host: HostVisits, store: RowStore, device: torch.device) -> None:
        """Take the streams.

        Args:
            host: Visits the rows in the computer's memory.
            store: Their home.
            device: The card.
        """
        self._host = host
        self._store = store
        self._device = device
        self._up, self._down = cuda.aside(device), cuda.aside(device)
        self._buffers: list[Tensor] = []
        self._freed: list[cuda.CudaEvent] = []  # when each of them is
        self._units: Sequence[RowUnit] = ()
        self._sent: list[_Sent] = []
        self._num_entered = 0
        self._in_memory: list[Tensor] = []  # views of the unit that is entered
        self._read_bytes = self._written_bytes = 0

    @property
    def waited_s(self) -> float:
        return self._up.waited_s  # what a disk takes longer is among it

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers)

    @property
    def host_bytes(self) -> int:
        return self._host.host_bytes

    @property
    def read_bytes(self) -> int:
        return self._read_bytes

    @property
    def read_s(self) -> float:
        return max(self._up.copied_s, self._host.read_s)

    @property
    def copied_s(self) -> float:
        return self._host.copied_s

    @property
    def written_bytes(self) -> int:
        return self._written_bytes

    @property
    def written_s(self) -> float:
        return self._down.copied_s + self._host.written_s

    def begin(self, units: Sequence[RowUnit]) -> None:
        self._store.settle()
        self._host.begin(units)
        self._make_room(units)
        self._freed = [self._up.mark()] * RING_UNITS  # a pass that failed may still use them
        self._units, self._sent, self._num_entered = units, [], 0
        self._send_ahead()

    def enter(self, unit: RowUnit) -> None:
        place = self._num_entered
        if place >= len(self._units) or unit != self._units[place]:
            raise EngineError("A pass came to cached rows that it hadn't told of.")
        left = self._up.mark()  # when the card has done what comes before
        self._host.enter(unit)
        if len(self._sent) == place:
            self._send(unit, [rows.shown(unit.layer) for rows in rows_of_unit(unit)])
        self._num_entered += 1
        self._send_ahead()
        sent = self._sent[place]
        self._up.wait(sent.mark, left)
        self._in_memory = []
        for rows, view in zip(rows_of_unit(unit), sent.views, strict=True):
            self._in_memory.append(rows.shown(unit.layer))
            rows.show(unit.layer, view)

    def leave(self) -> None:
        place, computed = self._num_entered - 1, self._up.mark()
        unit, views = self._units[place], self._sent[place].views
        for rows, view, to in zip(rows_of_unit(unit), views, self._in_memory, strict=True):
            down = self._down.copy(rows.fresh_part(to), rows.fresh_part(view), computed)
            self._written_bytes += rows.fresh_part(to).nbytes
            rows.show(unit.layer, to)
        self._freed[place % RING_UNITS] = down
        self._store.expect(partial(self._down.finish, down))
        self._sent[place] = _Sent((), down)  # holds no views
        self._host.leave()

    def _send_ahead(self) -> None:
        """Send what is in memory, as long as there is a buffer that nobody needs."""
        most = min(len(self._units), max(0, self._num_entered - 1) + RING_UNITS)
        while len(self._sent) < most:
            place = len(self._sent)
            if (views := self._host.ahead(place)) is None:
                return
            self._send(self._units[place], views)

    def _send(self, unit: RowUnit, views: Sequence[Tensor]) -> None:
        """Send the next unit into its buffer; its views are in memory."""
        place = len(self._sent) % RING_UNITS
        buffer, start, there = self._buffers[place], 0, list[Tensor]()
        mark = self._freed[place]
        for rows, view in zip(rows_of_unit(unit), views, strict=True):
            its = _like(view, buffer[start : start + view.nbytes])
            start += region_bytes(view.nbytes, 1)
            there.append(its)
            source = rows.committed_part(view)
            if len(source):
                mark = self._up.copy(rows.committed_part(its), source, self._freed[place])
                self._read_bytes += source.nbytes
        self._sent.append(_Sent(there, mark))

    def _make_room(self, units: Sequence[RowUnit]) -> None:
        """Buffers for whole contexts of the largest unit."""
        sizes = (
            len(unit.caches) * region_bytes(self._store.row_bytes(unit.layer), self._store.num_rows)
            for unit in units
        )
        size = max(sizes, default=0)
        if not self._buffers or len(self._buffers[0]) < size:
            for sent in self._sent:  # a pass that failed has left some on their way
                self._up.finish(sent.mark)
            self._buffers.clear()
            self._buffers += [
                torch.empty(size, dtype=torch.uint8, device=self._device) for _ in range(RING_UNITS)
            ]


def _like(view: Tensor, buffer: Tensor) -> Tensor:
    """A view of a buffer that lies in it as another view lies elsewhere."""
    return buffer.view(view.dtype).as_strided(view.shape, view.stride())
