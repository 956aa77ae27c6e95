"""The cache of the compiled step, in the panel layout that its attention reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof, sizeof

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import SharedRows, StateShape, recurrent_part
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.quantized import unpack_blocks
from medusa_core.runtime.kv.size import head_bytes, row_groups, whole_blocks
from medusa_core.runtime.kv.states import RecurrentStates
from medusa_core.system.native.constants import LANES, TensorType
from medusa_core.system.native.structs import (
    CacheStruct,
    LayerCacheStruct,
    StateShapeStruct,
    StatesStruct,
)

_TYPES = {
    torch.float32: TensorType.F32,
    torch.bfloat16: TensorType.BF16,
    torch.uint8: TensorType.Q8_0,
}


class PanelStates(RecurrentStates):
    """States whose pending steps are applied at the start of a compiled pass."""

    def apply_pending(self) -> None:
        """Do nothing: steps stay pending until a pass has applied them, as it may fail before."""

    def mark_applied(self) -> None:
        """Note that a pass has applied the pending steps."""
        self.num_pending = 0


class PanelCache(KvCache):
    """Keys in panels of sixteen, of bfloat16 values in pairs, in 8 bits both; see cache.h.

    Attributes:
        address: Address of the C `Cache`.
        states_struct: The C `States` of recurrent layers; None if there are none.
    """

    states_type = PanelStates

    def __init__(
        self,
        library: ctypes.CDLL,
        config: ModelConfig,
        dtype: torch.dtype,
        capacity: int,
        memory: Tensor | None = None,
        store: KvStore | None = None,
    ) -> None:
        """Allocate the cache.

        Args:
            library: The compiled library.
            config: Sizes of the target.
            dtype: Dtype of keys and values: float32 or bfloat16; uint8 for 8 bits with scales.
            capacity: Number of slots, rounded up to whole panels.
            memory: Memory for whole panels; None allocates it.
            store: Store of offloaded layers; None if there are none.
        """
        cpu, is_packed = torch.device("cpu"), dtype == torch.uint8

        def width_of(head_dim: int) -> int:
            """Elements of a head in a slot."""
            return head_bytes(head_dim, 1, "q8_0" * is_packed)

        self._head_dims = {width_of(shape.head_dim): shape.head_dim for shape in row_groups(config)}
        super().__init__(
            config,
            dtype,
            cpu,
            whole_blocks(capacity),
            memory=memory,
            width_of=width_of,
            store=store,
        )
        self._library = library
        self._layers = (LayerCacheStruct * config.num_layers)()
        # Layers that share rows have the place of the earlier layer that owns them.
        for layer, shape in enumerate(config.layers):
            owner = shape.layer if isinstance(shape, SharedRows) else layer
            if owner in self._places:
                self._places[layer] = self._places[owner]
            self._layers[layer].is_shared = owner != layer or owner not in self._places
        self._offloaded_layer = LayerCacheStruct()  # the one that is computed now
        self._stateful = [
            layer for layer, shape in enumerate(config.layers) if recurrent_part(shape) is not None
        ]
        self._struct = CacheStruct(
            layers=addressof(self._layers),
            num_layers=config.num_layers,
            type=_TYPES[dtype],
        )
        self.address = addressof(self._struct)
        self._point()
        self.states_struct = None if self.states is None else _struct_of(self.states, config)

    def _point(self) -> None:
        """Update the addresses in the C structures."""
        self._struct.capacity = self.capacity - self.num_shared
        self._struct.num_shared = self.num_shared
        self._struct.prefix = None
        if isinstance(self.prefix, PanelCache):
            self._struct.prefix = self.prefix.address
        for layer, (part, place) in self._places.items():
            if not self.is_offloaded(layer):  # zero heads: `keep_rows` skips an offloaded layer
                self._point_at(self._layers[layer], self._parts[part][place])
        if self.states is not None:
            for place, layer in enumerate(self._stateful):
                self._layers[layer].conv.state = self.states.layer(place).tail.data_ptr()
                self._layers[layer].conv.inputs = self.states.steps.inputs[place].data_ptr()

    def resize(self, memory: Tensor, slots: int) -> None:
        """Resize in place, and update the C structures."""
        super().resize(memory, slots)
        self._point()

    @property
    def can_share(self) -> bool:
        """Whether the first rows can be shared: not with states or offloaded rows."""
        return self.states is None and self._store is None

    def share(self, prefix: KvCache, num_rows: int) -> None:
        """Replace all rows by shared ones, and update the C structures."""
        super().share(prefix, num_rows)
        self._point()

    def split(self, prefix: KvCache, memory: Tensor) -> None:
        """Move the first own rows into another cache; see `KvCache`."""
        assert isinstance(prefix, PanelCache)  # of one runner
        length, num_moved = self.length, prefix.capacity
        num_slots, num_left = self.capacity - self.num_shared, length - self.num_shared - num_moved
        left = [self._panels(part, num_moved, num_moved + num_left).clone() for part in self._parts]
        # Layers move towards the beginning, so the first one goes first.
        for old, new in zip(self._parts, prefix._parts, strict=True):
            for layer in range(len(old)):
                rows = self._panels(old[layer : layer + 1], 0, num_moved).clone()
                self._panels(new[layer : layer + 1], 0, num_moved).copy_(rows)
        if self.prefix is not None:
            prefix.share(self.prefix, self.num_shared)
        prefix.length = self.num_shared + num_moved
        self._memory, self._parts = memory, self._parts_of(memory, num_slots - num_moved)
        for part, rows in zip(self._parts, left, strict=True):
            self._panels(part, 0, num_left).copy_(rows)
        self.capacity -= num_moved  # which `share` adds
        self.share(prefix, prefix.length)
        self.length = length

    def truncate(self, length: int) -> None:
        """Drop rows from `length` on; a cut within shared rows copies part of a panel."""
        if length < self.num_shared and self.prefix is not None:
            holder = self.prefix
            kept = length // LANES * LANES
            self.share(holder, kept)
            if kept < length:
                self._copy_rows(holder, length)
                self.length = length
        super().truncate(length)

    def _copy_rows(self, other: KvCache, num_rows: int) -> None:
        """Copy another cache's rows, shared ones from the caches that hold them."""
        at = self.num_shared
        while at < num_rows:
            holder, stop = other, num_rows
            while at < holder.num_shared and holder.prefix is not None:
                stop = min(holder.num_shared, num_rows)
                holder = holder.prefix
            for mine, theirs in zip(self._parts, holder._parts, strict=True):
                to = self._panels(mine, at - self.num_shared, stop - self.num_shared)
                to.copy_(self._panels(theirs, at - holder.num_shared, stop - holder.num_shared))
            at = stop

    @staticmethod
    def _panels(part: Tensor, first: int, stop: int) -> Tensor:
        """View the panels of some slots; the first is a multiple of 16."""
        return part.flatten(3)[..., first * part.shape[4] : whole_blocks(stop) * part.shape[4]]

    @property
    def num_pending(self) -> int:
        """Committed steps that the next pass must apply to the states."""
        return 0 if self.states is None else self.states.num_pending

    def mark_applied(self) -> None:
        """Note that a pass has applied the pending steps."""
        if isinstance(self.states, PanelStates):
            self.states.mark_applied()

    def from_layer(self, layer: int) -> ctypes.Array[CacheStruct]:
        """Return a C `Cache` of the layers from one on, then its prefixes; they share this memory.

        For an offloaded layer it describes that layer alone, with the rows that are prefetched now.
        """
        prefixes = [self.prefix] if isinstance(self.prefix, PanelCache) else []
        while prefixes and isinstance(prefixes[-1].prefix, PanelCache):
            prefixes.append(prefixes[-1].prefix)
        structs = (CacheStruct * (1 + len(prefixes)))()
        for place, cache in enumerate((self, *prefixes)):
            structs[place] = cache._struct_from_layer(layer)
            if place:
                structs[place - 1].prefix = addressof(structs) + place * sizeof(CacheStruct)
        return structs

    def _struct_from_layer(self, layer: int) -> CacheStruct:
        """Make the C `Cache` of the layers from one on; see `from_layer`."""
        struct = CacheStruct.from_buffer_copy(self._struct)
        if self.offloaded is not None and self.is_offloaded(layer):
            view = self.offloaded.view(layer)
            self._point_at(self._offloaded_layer, view)
            struct.layers, struct.num_layers = addressof(self._offloaded_layer), 1
            struct.capacity = view.shape[2]
            return struct  # such caches share no rows
        struct.layers = addressof(self._layers) + layer * sizeof(LayerCacheStruct)
        struct.num_layers -= layer
        return struct

    def rows_of(self, layer: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """See `ReadableCache`."""
        if self.is_offloaded(layer):
            keys, values = self._rows_in(self._offloaded_rows(layer, first), slice(None))
        elif first < self.num_shared and isinstance(self.prefix, PanelCache):
            num_shared = self.num_shared - first
            shared = (rows[:, :num_shared] for rows in self.prefix.rows_of(layer, first))
            own = self.rows_of(layer, self.num_shared)
            keys, values = (torch.cat(both, dim=1) for both in zip(shared, own, strict=True))
            return keys, values
        else:
            part, place = self._places[layer]
            own_first, own_length = first - self.num_shared, self.length - self.num_shared
            panels = slice(own_first // LANES, -(-own_length // LANES))
            keys, values = self._rows_in(self._parts[part][place], panels)
        kept = slice(first % LANES, first % LANES + self.length - first)
        return keys[:, kept], values[:, kept]

    def committed(self) -> Tensor:
        """Copy all committed rows, out of their panels."""
        return self._concat_committed(self._committed_parts(self.length))

    def _committed_parts(self, length: int) -> list[Tensor]:
        """Copy the first committed rows of each shape. [layers, 2, kv heads, length, head_dim]"""
        own = [self._by_slot(part, length - self.num_shared) for part in self.full_parts()]
        if not isinstance(self.prefix, PanelCache):
            return own
        shared = self.prefix._committed_parts(self.num_shared)
        return [torch.cat(both, dim=3) for both in zip(shared, own, strict=True)]

    def committed_states(self) -> list[Tensor]:
        """Copies of the states with pending steps applied, by the library."""
        if not isinstance(self.states, PanelStates) or self.states_struct is None:
            return []
        now = [part.clone() for part in self.states.current]
        struct = StatesStruct.from_buffer_copy(self.states_struct)
        struct.state, struct.conv_state = (part.data_ptr() for part in now)
        # In C: its order of summation is that of a pass.
        self._library.apply_pending(None, addressof(struct), self.states.num_pending)
        return now

    def _by_slot(self, part: Tensor, length: int) -> Tensor:
        """Copy the first own rows of a part. [layers, 2, kv heads, length, head_dim]"""
        every = slice(0, part.shape[3] // LANES)
        rows = [torch.stack(self._rows_in(layer, every)) for layer in part]
        return torch.stack(rows)[:, :, :, :length]

    def _rows_in(self, layer: Tensor, panels: slice) -> tuple[Tensor, Tensor]:
        """Copy a layer's keys and values out of their panels.

        Args:
            layer: [2, kv heads, slots, width]
            panels: Range of panels.

        Returns:
            Keys and values, each [kv heads, rows, head_dim]; dequantized if they are in 8 bits.
        """
        _, num_kv, _, width = layer.shape
        head_dim = self._head_dims[width]
        if layer.dtype == torch.uint8:
            whole = layer.view(2, num_kv, -1, LANES * width)[:, :, panels]
            codes, scales = whole[..., : LANES * head_dim], whole[..., LANES * head_dim :]
            shape = whole.shape[1:3]
            of_keys = codes[0].reshape(*shape, head_dim // 4, LANES, 4).transpose(2, 3).flatten(3)
            of_values = codes[1].reshape(*shape, LANES, head_dim)
            num_scales = scales.shape[-1] // (2 * LANES)
            by_row = scales.reshape(2, *shape, num_scales, LANES, 2).transpose(3, 4).flatten(4)
            rows = (
                torch.cat(each, dim=-1).flatten(1, 2)
                for each in zip((of_keys, of_values), by_row, strict=True)
            )
            first, second = (unpack_blocks(each, head_dim) for each in rows)
            return first, second
        size = 2 if layer.dtype == torch.bfloat16 else 1
        keys = layer[0].view(num_kv, -1, head_dim // size, LANES, size)[:, panels]
        values = layer[1].view(num_kv, -1, LANES // size, head_dim, size)[:, panels]
        by_slot = (keys.transpose(2, 3), values.transpose(3, 4))
        first, second = (part.reshape(num_kv, -1, head_dim) for part in by_slot)
        return first, second

    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        """View the panels of the first rows."""
        return data.flatten(3)[..., : whole_blocks(length) * data.shape[4]]

    def _compact(self, slots: Sequence[int]) -> None:
        """Move accepted rows to the front, by the library."""
        self._compact_native(self._struct, self.length, slots)

    def _compact_parts(self, parts: Sequence[Tensor], first: int, slots: Sequence[int]) -> None:
        """Move accepted rows of some layers to the front, by the library."""
        layers = [layer for part in parts for layer in part]
        structs = (LayerCacheStruct * len(layers))()
        for struct, rows in zip(structs, layers, strict=True):
            self._point_at(struct, rows)
        cache = CacheStruct.from_buffer_copy(self._struct)
        cache.layers, cache.num_layers = addressof(structs), len(layers)
        cache.capacity = layers[0].shape[2]
        self._compact_native(cache, first, slots)

    def _point_at(self, struct: LayerCacheStruct, rows: Tensor) -> None:
        """Fill a layer's C struct from its KV rows. [2, kv heads, slots, width]"""
        struct.words = rows.data_ptr()
        _, struct.num_kv_heads, _, width = rows.shape
        struct.head_dim = self._head_dims[width]

    def _compact_native(self, cache: CacheStruct, first: int, slots: Sequence[int]) -> None:
        """Let the library move rows of a C `Cache`."""
        ids = (ctypes.c_int64 * len(slots))(*slots)
        self._library.keep_rows(addressof(cache), first, addressof(ids), len(slots))


def _struct_of(states: RecurrentStates, config: ModelConfig) -> StatesStruct:
    """Describe recurrent states to the library."""
    shape, steps = config.state_layers[0], states.steps
    return StatesStruct(
        *(part.data_ptr() for part in (*states.current, *steps)),
        shape=shape_struct(shape),
        num_layers=len(config.state_layers),
        max_steps=steps.inputs.shape[1],
    )


def shape_struct(shape: StateShape) -> StateShapeStruct:
    """Return a layer's state sizes as a C structure."""
    return StateShapeStruct(
        shape.num_heads,
        shape.key_dim,
        shape.value_dim,
        shape.num_key_heads,
        shape.channels,
        shape.conv_width,
    )
