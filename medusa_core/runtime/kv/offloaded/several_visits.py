"""Cached rows in several homes, each visited in its own way."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.runtime.kv.offloaded.unit import RowUnit
from medusa_core.runtime.kv.offloaded.visits import RowVisits


class SeveralVisits(RowVisits):
    """Visits of different layers; see `RowVisits`."""

    def __init__(self, visits: dict[tuple[int, ...], RowVisits]) -> None:
        """Take the visits of each home by its layers."""
        self._homes = visits
        self._of_layer = {layer: its for layers, its in visits.items() for layer in layers}
        self._entered: RowVisits | None = None

    @property
    def waited_s(self) -> float:
        return sum(its.waited_s for its in self._homes.values())

    @property
    def nbytes(self) -> int:
        return sum(its.nbytes for its in self._homes.values())

    @property
    def host_bytes(self) -> int:
        return sum(its.host_bytes for its in self._homes.values())

    @property
    def read_bytes(self) -> int:
        return sum(its.read_bytes for its in self._homes.values())

    @property
    def read_s(self) -> float:
        return sum(its.read_s for its in self._homes.values())

    @property
    def copied_s(self) -> float:
        return sum(its.copied_s for its in self._homes.values())

    @property
    def written_bytes(self) -> int:
        return sum(its.written_bytes for its in self._homes.values())

    @property
    def written_s(self) -> float:
        return sum(its.written_s for its in self._homes.values())

    def begin(self, units: Sequence[RowUnit]) -> None:
        for layers, its in self._homes.items():
            its.begin([unit for unit in units if unit.layer in layers])

    def enter(self, unit: RowUnit) -> None:
        self._entered = self._of_layer[unit.layer]
        self._entered.enter(unit)

    def leave(self) -> None:
        assert self._entered is not None
        self._entered.leave()
