"""The cache for torch's operations: slot by slot, as its attention reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.cache import KvCache


@dataclass(frozen=True, slots=True)
class _Pending:
    """Views into the cache for the forward pass under way, one per layer.

    Attributes:
        fresh: The reserved slots. [2, kv heads, n, head_dim]
        keys: All keys up to the last reserved slot. [kv heads, s, head_dim]
        values: All values likewise.
    """

    fresh: tuple[Tensor, ...]
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]


class TensorCache(KvCache):
    """Keys and values as they are. [layers, 2, kv heads, slots, head_dim]

    Attributes:
        address: Where they lie: it changes when the cache grows.
    """

    def __init__(
        self,
        config: ModelConfig,
        precision: Precision,
        capacity: int,
        num_spare: int = 0,
        memory: Tensor | None = None,
    ) -> None:
        """Take the memory; see `KvCache`."""
        dtype, width = self._layout(config, precision)
        super().__init__(config, dtype, precision.device, capacity, num_spare, memory, width)
        self._fixed: tuple[Tensor, int] | None = None
        self._pending: _Pending | None = None
        self._num_reserved = 0

    def _layout(self, config: ModelConfig, precision: Precision) -> tuple[torch.dtype, int]:
        """Dtype and numbers of a head in a slot."""
        return precision.cache, config.head_dim

    @property
    def address(self) -> int:
        return self._data.data_ptr()

    def stretch(self, memory: Tensor) -> None:
        super().stretch(memory)
        self._pending = None  # its views are of the old shape

    def reserve(self, num_rows: int) -> None:
        super().reserve(num_rows)
        self._num_reserved = num_rows
        self._pending = self._fixed = None

    def reserve_slots(self, slots: Tensor, width: int) -> None:
        """Open slots that only the device knows; the first `width` slots are read.

        Args:
            slots: Where the rows go. [n], int64
            width: Slots that `write` gives back.
        """
        self._fixed = (slots, width)

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Store the reserved rows of one layer.

        Args:
            layer: Which layer.
            rows: Keys, then values: [n, 2 · kv heads, head_dim].

        Returns:
            All keys and all values up to the last reserved row, each [kv heads, s, head_dim].
        """
        if self._fixed is not None:
            return self._write_fixed(layer, rows, *self._fixed)
        pending = self._pending = self._pending or self._views()
        fresh = pending.fresh[layer]
        _, num_kv, num_rows, head_dim = fresh.shape
        fresh.copy_(rows.view(num_rows, 2, num_kv, head_dim).permute(1, 2, 0, 3))
        return pending.keys[layer], pending.values[layer]

    def _write_fixed(
        self, layer: int, rows: Tensor, slots: Tensor, width: int
    ) -> tuple[Tensor, Tensor]:
        whole = self._data[layer]
        _, num_kv, _, head_dim = whole.shape
        fresh = rows.view(len(rows), 2, num_kv, head_dim).permute(1, 2, 0, 3)
        whole.index_copy_(2, slots, fresh.to(whole.dtype))
        return whole[0, :, :width], whole[1, :, :width]

    def _views(self) -> _Pending:
        """All layers at once: slicing layer by layer would cost as much as the copies."""
        end = self.length + self._num_reserved
        return _Pending(
            fresh=self._data[:, :, :, self.length : end].unbind(0),
            keys=self._data[:, 0, :, :end].unbind(0),
            values=self._data[:, 1, :, :end].unbind(0),
        )

    def committed(self) -> Tensor:
        return self._data[:, :, :, : self.length].clone()

    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        return data[:, :, :, :length]

    def _move(self, slots: Sequence[int]) -> None:
        # One after the other: slots ascend, so that none is overwritten before it is read, and no
        # list of them has to be brought to the device.
        rows = self._data[:, :, :, self.length :]
        for place, slot in enumerate(slots):
            if place != slot:
                rows[:, :, :, place] = rows[:, :, :, slot]
