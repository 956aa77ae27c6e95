"""Homes of cached rows side by side: some layers in the computer's memory, others on a disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

from medusa_core.runtime.kv.offloaded.rows import HomeRows, OffloadedRows, Undecided
from medusa_core.runtime.kv.offloaded.store import RowStore


class SeveralStores(RowStore):
    """Homes of different layers; see `RowStore`.

    Attributes:
        stores: They.
    """

    def __init__(self, stores: Sequence[RowStore]) -> None:
        """Take homes for as many sessions of as many rows each."""
        layers = tuple(chain.from_iterable(store.layers for store in stores))
        super().__init__(layers, stores[0].num_sessions, stores[0].num_rows)
        self.stores = tuple(stores)

    def lay_out(self, dtype: torch.dtype, device: torch.device) -> None:
        for store in self.stores:
            store.lay_out(dtype, device)

    @property
    def device_bytes(self) -> int:
        return sum(store.device_bytes for store in self.stores)

    @property
    def host_bytes(self) -> int:
        return sum(store.host_bytes for store in self.stores)

    @property
    def step_rows(self) -> int:
        return min(store.step_rows for store in self.stores)

    @property
    def num_free(self) -> int:
        return min(store.num_free for store in self.stores)

    def row_bytes(self, layer: int) -> int:
        return next(store for store in self.stores if layer in store.layers).row_bytes(layer)

    def new_rows(self) -> SeveralRows:
        return SeveralRows({store.layers: store.new_rows() for store in self.stores})


class SeveralRows(OffloadedRows):
    """A session's rows in all homes; see `OffloadedRows`. Layers are visited in their own home."""

    def __init__(self, homes: dict[tuple[int, ...], OffloadedRows]) -> None:
        """Take the rows of each home by its layers."""
        self._homes = tuple(homes.values())
        self._of_layer = {layer: rows for layers, rows in homes.items() for layer in layers}

    def holding(self, layer: int) -> HomeRows:
        return self._of_layer[layer].holding(layer)

    def release(self) -> None:
        for rows in self._homes:
            rows.release()

    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        for rows in self._homes:
            rows.reserve(length, num_rows, decided)

    def undecided(self, length: int) -> Sequence[Undecided]:
        return [some for rows in self._homes for some in rows.undecided(length)]

    def commit(self, length: int, num_rows: int) -> None:
        for rows in self._homes:
            rows.commit(length, num_rows)

    def truncate(self, length: int) -> None:
        for rows in self._homes:
            rows.truncate(length)

    def fill(self, length: int) -> None:
        for rows in self._homes:
            rows.fill(length)

    def rows(self, layer: int, first: int, length: int) -> Tensor:
        return self._of_layer[layer].rows(layer, first, length)
