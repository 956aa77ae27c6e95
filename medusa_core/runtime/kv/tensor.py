"""The cache for torch's attention: keys and values as plain tensors, slot by slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import recurrent_part
from medusa_core.models.precision import Precision
from medusa_core.runtime.backends.caches import LayerAddresses, LayerState, RecurrentSteps
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import ROUND_ROWS
from medusa_core.runtime.kv.states import RecurrentStates


@dataclass(frozen=True, slots=True)
class _Pending:
    """Views of a part for one forward pass, one per layer.

    Attributes:
        fresh: Reserved slots. [2, kv heads, n, head_dim]
        keys: Keys up to the last reserved slot. [kv heads, s, head_dim]
        values: Values up to the last reserved slot. [kv heads, s, head_dim]
    """

    fresh: tuple[Tensor, ...]
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]


class TensorCache(KvCache):
    """Keys and values without quantization, and recurrent states.

    Attributes:
        address: Address of the memory; it changes when the pool moves the cache.
    """

    def __init__(
        self,
        config: ModelConfig,
        precision: Precision,
        capacity: int,
        num_spare: int = 0,
        memory: Tensor | None = None,
        store: KvStore | None = None,
    ) -> None:
        """Allocate the cache; see `KvCache`."""
        super().__init__(
            config,
            self._dtype(precision),
            precision.device,
            capacity,
            num_spare,
            memory,
            self._width,
            precision.compute,
            store,
        )
        held = (
            layer for layer, shape in enumerate(config.layers) if recurrent_part(shape) is not None
        )
        self._state_places = {layer: place for place, layer in enumerate(held)}
        self._fixed: tuple[Tensor, int] | None = None
        self._pending: dict[int, _Pending] = {}
        self._num_reserved = 0

    def _dtype(self, precision: Precision) -> torch.dtype:
        """Dtype of keys and values."""
        return precision.cache

    def _width(self, head_dim: int) -> int:
        """Elements of a head in a slot."""
        return head_dim

    @property
    def address(self) -> int:
        """Address of the cache's memory."""
        return self._memory.data_ptr()

    def resize(self, memory: Tensor, slots: int) -> None:
        """Resize in place; views of the old shape are dropped."""
        super().resize(memory, slots)
        self._pending.clear()  # its views are of the old shape

    def reserve(self, num_rows: int, decided: bool = False) -> None:
        """Reserve slots for a pass; see `KvCache`."""
        super().reserve(num_rows, decided)
        self._num_reserved = num_rows
        self._pending.clear()
        self._fixed = None

    def reserve_slots(self, slots: Tensor, width: int) -> None:
        """Reserve slots whose indices are on the device, for steps with static shapes.

        Args:
            slots: Slot of each row. [n], int64
            width: Number of slots that `write` and `read` return.
        """
        self._fixed = (slots, width)

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Store the reserved rows of one layer.

        Args:
            layer: Index of the layer.
            rows: Keys, then values. [n, 2 · kv heads, head_dim]

        Returns:
            Keys and values up to the last reserved row, each [kv heads, s, head_dim].
        """
        if self._fixed is not None:
            part, place = self._places[layer]
            whole = self._parts[part][place]
            _, num_kv, _, head_dim = whole.shape
            fresh = rows.view(len(rows), 2, num_kv, head_dim).permute(1, 2, 0, 3)
            whole.index_copy_(2, self._fixed[0], fresh.to(whole.dtype))
        else:
            fresh, _, _ = self._pending_rows(layer)
            _, num_kv, num_rows, head_dim = fresh.shape
            fresh.copy_(rows.view(num_rows, 2, num_kv, head_dim).permute(1, 2, 0, 3))
        return self.read(layer)

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return what `write` returned for a layer in this pass."""
        if self._fixed is not None:
            part, place = self._places[layer]
            whole, width = self._parts[part][place], self._fixed[1]
            return whole[0, :, :width], whole[1, :, :width]
        _, keys, values = self._pending_rows(layer)
        return keys, values

    def layer_addresses(self, layer: int) -> LayerAddresses:
        """Return where a layer's keys and values are, until the cache is moved or resized."""
        part, place = self._places[layer]
        keys, values = self._parts[part][place]
        return LayerAddresses(keys.shape[1], keys.data_ptr(), values.data_ptr())

    def device_of(self, layer: int) -> torch.device:
        """Device of a layer's rows in this pass."""
        if self.offloaded is not None and self.is_offloaded(layer):
            return self.offloaded.view(layer).device
        return self._memory.device

    def _pending_rows(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return a layer's `_Pending` views."""
        part, place = self._places[layer]
        if self.offloaded is not None and self.is_offloaded(layer):
            view, end = self.offloaded.view(layer), self.length + self._num_reserved
            return view[:, :, self.length : end], view[0, :, :end], view[1, :, :end]
        pending = self._views(part)
        return pending.fresh[place], pending.keys[place], pending.values[place]

    def _views(self, part: int) -> _Pending:
        """Slice all layers at once: layer by layer it would cost as much as the copies."""
        if part not in self._pending:
            data, end = self._parts[part], self.length + self._num_reserved
            self._pending[part] = _Pending(
                fresh=data[:, :, :, self.length : end].unbind(0),
                keys=data[:, 0, :, :end].unbind(0),
                values=data[:, 1, :, :end].unbind(0),
            )
        return self._pending[part]

    def state(self, layer: int) -> LayerState:
        """State of a recurrent layer before the pass; see `LayerCache`."""
        return self._recurrent_states().layer(self._state_places[layer])

    def put_state(self, layer: int, state: LayerState) -> None:
        """Keep a layer's state after all decided rows but the last; see `LayerCache`."""
        self._recurrent_states().put_state(self._state_places[layer], state)

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        """Keep what each row of a pass changes in a layer's recurrent state; see `LayerCache`."""
        self._recurrent_states().put(self._state_places[layer], steps)

    def _recurrent_states(self) -> RecurrentStates:
        """The states, which a model with recurrent layers has."""
        assert self.states is not None  # the layers of this model have none
        return self.states

    def rows_of(self, layer: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """See `ReadableCache`."""
        if self.is_offloaded(layer):
            skipped = first % ROUND_ROWS
            rows = self._offloaded_rows(layer, first)[:, :, skipped : skipped + self.length - first]
            return rows[0], rows[1]
        part, place = self._places[layer]
        keys, values = self._parts[part][place][:, :, first : self.length]
        return keys, values

    def committed(self) -> Tensor:
        """Copy all committed rows and states."""
        return self._concat_committed([part[:, :, :, : self.length] for part in self.full_parts()])

    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        """View the first slots of a part."""
        return data[:, :, :, :length]

    def _compact_parts(self, parts: Sequence[Tensor], first: int, slots: Sequence[int]) -> None:
        """Move accepted rows to the front, slot by slot."""
        # Slots ascend, so none is overwritten before it is read; and no index tensor has to be
        # copied to the device.
        for part in parts:
            rows = part[:, :, :, first:]
            for place, slot in enumerate(slots):
                if place != slot:
                    rows[:, :, :, place] = rows[:, :, :, slot]
