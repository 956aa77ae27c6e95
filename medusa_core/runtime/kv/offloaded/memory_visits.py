"""Cached rows in the computer's memory, visited where they lie."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from medusa_core.runtime.kv.offloaded.memory import MemoryRows
from medusa_core.runtime.kv.offloaded.unit import RowUnit
from medusa_core.runtime.kv.offloaded.visits import HostVisits, rows_of_unit


class MemoryVisits(HostVisits):
    """Shows a pass its rows; see `RowVisits`."""

    def __init__(self) -> None:
        self._units: Sequence[RowUnit] = ()
        self._entered: list[MemoryRows] = []
        self._written_bytes = 0

    @property
    def written_bytes(self) -> int:
        return self._written_bytes

    def ahead(self, place: int) -> Sequence[Tensor]:
        unit = self._units[place]
        return [rows.home(unit.layer) for rows in _rows_in(unit)]

    def begin(self, units: Sequence[RowUnit]) -> None:
        self._units, self._entered = units, []

    def enter(self, unit: RowUnit) -> None:
        self._entered = _rows_in(unit)
        for rows in self._entered:
            home = rows.home(unit.layer)
            rows.show(unit.layer, home)
            self._written_bytes += rows.fresh_part(home).nbytes

    def leave(self) -> None:
        for rows in self._entered:
            rows.leave()
        self._entered = []


def _rows_in(unit: RowUnit) -> list[MemoryRows]:
    found = rows_of_unit(unit)
    return [rows for rows in found if isinstance(rows, MemoryRows)]  # memory has no others
