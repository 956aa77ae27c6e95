"""The KV cache of a session: keys, values and recurrent states, with room for a token tree.

All layers whose rows have the same shape share one tensor, so that one operation keeps an accepted
path in the whole model. Slots `length … length + n` take the rows of a forward pass; `commit` keeps
some of them. Rows of offloaded layers are in a store, see `runtime/kv/offloaded`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import rows_of
from medusa_core.runtime.kv.offloaded.offloaded_kv import OffloadedKv
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    STEP_ROWS,
    num_checkpoints,
    row_groups,
    state_bytes,
    state_itemsize,
    state_rows,
    whole_blocks,
)
from medusa_core.runtime.kv.states import RecurrentStates


@runtime_checkable
class ReadableCache(Protocol):
    """A cache whose rows can be read between two passes, for example by a drafter.

    Attributes:
        length: Number of committed rows.
    """

    length: int

    def rows_of(self, layer: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """Return committed keys and values of a layer, after norm and RoPE.

        Args:
            layer: Index of a layer that has rows of its own.
            first: Index of the first row.

        Returns:
            Keys and values, each [kv heads, length − first, head_dim], in the cache's dtype or, if
            it is quantized, in that of attention: views or copies, valid until the next pass.
        """


class KvCache(ABC):
    """Keys, values and states of one session.

    Attributes:
        length: Number of committed rows, including shared ones.
        capacity: Number of slots, including shared rows.
        prefix: Cache with the first rows, which several caches read and none writes; None if
            nothing is shared.
        num_shared: Number of rows of `prefix` that precede this cache's own.
        states: States of recurrent layers; None if the model has none.
        offloaded: Rows of offloaded layers; None before the first pass, and if there are none.
    """

    states_type: type[RecurrentStates] = RecurrentStates

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype,
        device: torch.device,
        capacity: int,
        num_spare: int = 0,
        memory: Tensor | None = None,
        width_of: Callable[[int], int] = int,
        compute: torch.dtype = torch.float32,
        store: KvStore | None = None,
    ) -> None:
        """Allocate the cache.

        Args:
            config: Sizes of the target.
            dtype: Dtype of keys and values.
            device: Device of keys and values.
            capacity: Number of slots.
            num_spare: Further slots, for padding rows. All slots are then zeroed, because steps of
                fixed width read beyond the written ones.
            memory: Memory for the states, then `capacity` slots including the spare ones; None
                allocates it.
            width_of: Returns the elements of a head in a slot for a head_dim.
            compute: Dtype of the model's activations.
            store: Store of offloaded layers, whose rows take no room here; None if there are none.
        """
        self._num_spare = num_spare
        slots = capacity + num_spare
        if memory is not None:
            capacity, slots = capacity - num_spare, capacity
        self._store = store
        self._groups = list(row_groups(config).values())
        self._attends = any(rows_of(shape) is not None for shape in config.layers)
        if store is not None:
            store.allocate(dtype, device)
        # The part of each layer with rows of its own, and the layer's index in it: in this cache's
        # memory, or in a tail of the store.
        self._places: dict[int, tuple[int, int]] = {}
        for part, layers in enumerate(self._groups):
            resident = [layer for layer in layers if not self.is_offloaded(layer)]
            offloaded = [layer for layer in layers if self.is_offloaded(layer)]
            for side in (resident, offloaded):
                self._places |= {layer: (part, place) for place, layer in enumerate(side)}
        self._shapes = [
            (
                sum(not self.is_offloaded(layer) for layer in layers),
                *(2, shape.num_kv_heads, width_of(shape.head_dim)),
            )
            for shape, layers in row_groups(config).items()
        ]
        row = sum(torch.Size(shape).numel() for shape in self._shapes)
        self._num_state_rows = state_rows(config, compute.itemsize, row * dtype.itemsize)
        if memory is None:
            memory = _allocate((slots + self._num_state_rows) * row, dtype, device, slots)
        self._states_size = self._num_state_rows * row
        self._memory = memory
        self._parts = self._parts_of(memory, slots)
        if num_spare:
            memory[self._states_size :].zero_()
        self.length = 0
        self.capacity = capacity
        self.prefix: KvCache | None = None
        self.num_shared = 0
        self.states = self._new_states(config, compute)
        self.offloaded: OffloadedKv | None = None

    def is_offloaded(self, layer: int) -> bool:
        """Whether a layer's rows are in the store."""
        return self._store is not None and layer in self._store.layers

    def release(self) -> None:
        """Drop all rows before the pool takes the memory back; a second call does nothing."""
        if self.prefix is not None:
            self.share(self.prefix, 0)
        if self.offloaded is not None:
            self.offloaded.release()
            self.offloaded, self.length = None, 0

    def _parts_of(self, memory: Tensor, slots: int) -> list[Tensor]:
        """Views of the layers of each shape. [layers, 2, kv heads, slots, width]"""
        parts, at = [], self._states_size
        for layers, two, heads, width in self._shapes:
            size = layers * two * heads * slots * width
            parts.append(memory[at : at + size].view(layers, two, heads, slots, width))
            at += size
        return parts

    def _new_states(self, config: ModelConfig, compute: torch.dtype) -> RecurrentStates | None:
        """Make the states of recurrent layers in the cache's memory; None if there are none."""
        layers = config.state_layers
        if not layers:
            return None
        item = state_itemsize(compute.itemsize)
        dtype = torch.float64 if item > 4 else torch.float32
        nbytes = state_bytes(config, compute.itemsize)
        with torch.inference_mode(False):  # else only inference could write into it
            own = self._memory[: self._states_size].view(torch.uint8)[:nbytes].view(dtype)
        return self.states_type(
            layers[0], len(layers), num_checkpoints(layers[0], len(layers), item), own
        )

    @property
    def nbytes(self) -> int:
        """Bytes of device memory, without those of the store."""
        return self._memory.nbytes

    @property
    def most_rows(self) -> int:
        """Largest tree whose rows can be rolled back."""
        most = self.capacity if self.states is None else min(STEP_ROWS, self.capacity)
        return most if self._store is None else min(most, self._store.step_rows)

    def resize(self, memory: Tensor, slots: int) -> None:
        """Resize the cache in place.

        Args:
            memory: Longer or shorter memory with the same first address.
            slots: New number of slots, including the spare ones; enough for the committed rows.
        """
        new, num_rows = self._parts_of(memory, slots), self.length - self.num_shared
        # Layers move towards the end when the cache grows, so the last one goes first; and towards
        # the beginning when it shrinks, so the first one does.
        order = reversed if memory.numel() > self._memory.numel() else iter
        for old_part, new_part in order(list(zip(self._parts, new, strict=True))):
            before, after = (self._first_rows(part, num_rows) for part in (old_part, new_part))
            for layer in order(range(len(new_part))):
                kept = before[layer].clone()
                if self._num_spare:
                    new_part[layer].zero_()
                after[layer].copy_(kept)
        self._memory, self._parts = memory, new
        self.capacity = self.num_shared + slots - self._num_spare

    def take_over(self, other: KvCache) -> None:
        """Copy another cache of this type; rows in the store are moved."""
        if other.prefix is not None:
            self.share(other.prefix, other.num_shared)
        self.length = other.length
        if self._store is not None:
            self.release()
            self.offloaded, other.offloaded = other.offloaded, None
            self.length, other.length = other.length, 0
        num_rows = self.length - self.num_shared
        for mine, theirs in zip(self._parts, other._parts, strict=True):
            self._first_rows(mine, num_rows).copy_(self._first_rows(theirs, num_rows))
        if self.states is not None and other.states is not None:
            self.states.take_over(other.states)

    def num_reusable(self, num_rows: int) -> int:
        """Number of rows, at most `num_rows`, that `copy_prefix` can copy to another cache.

        Recurrent states limit it to lengths with a checkpoint; offloaded rows can't be copied.
        """
        if self._store is not None:
            return 0
        num_rows = min(self.length, num_rows)
        return (
            num_rows
            if self.states is None
            else self.states.restorable_length(num_rows, self.length)
        )

    @property
    def can_share(self) -> bool:
        """Whether `split` can move the first rows into a shared cache."""
        return False

    def share(self, prefix: KvCache, num_rows: int) -> None:
        """Replace all rows by another cache's first ones, without a copy.

        Args:
            prefix: Cache of this type that isn't written any more.
            num_rows: Rows to share, a multiple of 16; 0 ends sharing.
        """
        num_slots = self.capacity - self.num_shared
        while num_rows <= prefix.num_shared and prefix.prefix is not None:
            prefix = prefix.prefix
        self.prefix = prefix if num_rows else None
        self.length = self.num_shared = num_rows
        self.capacity = num_rows + num_slots

    def split(self, prefix: KvCache, memory: Tensor) -> None:
        """Move the first of this cache's own rows into another cache, and share it.

        Args:
            prefix: Cache for as many rows as it has slots; its memory is the start of this one's.
            memory: The rest of this cache's memory, for the other slots.
        """
        raise EngineError("This cache can't share rows.")

    def copy_prefix(self, other: KvCache, num_rows: int) -> None:
        """Replace all rows by copies of another's first ones; rows that both share stay shared.

        Args:
            other: Cache of this type.
            num_rows: At most `other.num_reusable`, and this cache's capacity.
        """
        self.truncate(self.num_shared)
        self._copy_rows(other, num_rows)
        if self.states is not None and other.states is not None:
            self.states.take_over(other.states)
            self.states.truncate(num_rows, other.length)
        self.length = num_rows

    def _copy_rows(self, other: KvCache, num_rows: int) -> None:
        """Copy another cache's rows from the shared ones up to `num_rows`."""
        for mine, theirs in zip(self._parts, other._parts, strict=True):
            self._first_rows(mine, num_rows).copy_(self._first_rows(theirs, num_rows))

    def reserve(self, num_rows: int, decided: bool = False) -> None:
        """Reserve slots after the committed rows for one forward pass.

        Args:
            num_rows: Number of slots.
            decided: All of them will be committed, such as those of a prompt.

        Raises:
            EngineError: There are too few free slots.
            TierError: Offloaded rows that a failed pass moved can't be read back.
        """
        if self.length + num_rows > self.capacity:
            raise EngineError(
                tr(
                    "{0} rows don't fit behind {1} of {2} slots.",
                    num_rows,
                    self.length,
                    self.capacity,
                )
            )
        if self.states is not None:
            self.states.begin(num_rows, decided)
        if self._store is not None:
            self.offloaded = self.offloaded or self._store.new_session()
            self.offloaded.reserve(self.length, num_rows, decided)

    def commit(self, slots: Sequence[int]) -> None:
        """Keep some of the reserved rows, in order, and drop the others.

        Args:
            slots: Offsets among the reserved rows, ascending.
        """
        self._gather_rows(slots)
        if self.states is not None:
            self.states.commit(slots)
        if self.offloaded is not None:
            self.offloaded.commit(self.length, len(slots))
        self.length += len(slots)

    def _gather_rows(self, slots: Sequence[int]) -> None:
        """Move accepted rows to the front of the reserved ones, offloaded ones included."""
        if slots and slots[-1] != len(slots) - 1:  # else they are in place
            self._compact(slots)
            if self.offloaded is not None:
                for parts, first in self.offloaded.speculative(self.length):
                    self._compact_parts(parts, first, slots)

    def truncate(self, length: int) -> None:
        """Drop rows from `length` on; states may force a smaller `self.length`."""
        length = min(self.length, length)
        if self.states is not None:
            length = self.states.truncate(length, self.length)
        if self.offloaded is not None:
            self.offloaded.truncate(length)
        self.length = length

    def checkpoint(self) -> None:
        """Save the states, so that a later truncation can return to this length."""
        if self.states is not None:
            self.states.checkpoint(self.length)

    def fill(self, length: int) -> None:
        """Commit `length` rows of zeros, for measurements."""
        for part in self._parts:
            self._first_rows(part, length).zero_()
        if self._store is not None:
            self.offloaded = self.offloaded or self._store.new_session()
            self.offloaded.fill(length)
        self.length = length
        if self.states is not None:
            self.states.clear()
            self.checkpoint()  # so that measured steps can be rolled back

    @abstractmethod
    def committed(self) -> Tensor:
        """Copy all committed rows and states, for comparisons.

        Returns:
            [layers, 2, kv heads, length, head_dim]; flat if shapes differ or there are states.
        """

    def full_parts(self) -> list[Tensor]:
        """Committed rows of each shape, offloaded ones included, and maybe a few more.

        Returns:
            [layers, 2, kv heads, slots, width]
        """
        return [self._full_part(part) for part in range(len(self._parts))]

    def _full_part(self, part: int) -> Tensor:
        """Committed rows of one shape; see `full_parts`."""
        layers, resident = self._groups[part], self._parts[part]
        if not any(self.is_offloaded(layer) for layer in layers):
            return resident
        slots = min(resident.shape[3], whole_blocks(self.length))
        rows = [
            self._offloaded_rows(layer, 0)
            if self.is_offloaded(layer)
            else resident[self._places[layer][1]]
            for layer in layers
        ]
        return torch.stack([each[:, :, :slots] for each in rows])

    def _offloaded_rows(self, layer: int, first: int) -> Tensor:
        """Copy a layer's committed rows from a block on. [2, kv heads, slots, width]"""
        if self.offloaded is None:  # nothing was ever written
            part = self._parts[self._places[layer][0]]
            return part.new_empty(2, part.shape[2], 0, part.shape[4])
        rows = self.offloaded.read(layer, first // ROUND_ROWS * ROUND_ROWS, self.length)
        return rows.to(self._memory.device)

    def _concat_committed(self, rows: Sequence[Tensor]) -> Tensor:
        """Concatenate committed rows of each shape and the states; see `committed`."""
        if len(rows) == 1 and self.states is None:
            return rows[0].clone()
        rows = rows if self._attends else ()  # nothing ever writes the rows of `row_groups` then
        return torch.cat([part.flatten() for part in (*rows, *self.committed_states())])

    def committed_states(self) -> list[Tensor]:
        """Copies of states and convolution inputs after all committed rows."""
        return [] if self.states is None else self.states.committed_copies()

    @abstractmethod
    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        """View the first `length` rows of a part, and maybe a few more."""

    def _compact(self, slots: Sequence[int]) -> None:
        """Move accepted rows to the front of the reserved ones."""
        self._compact_parts(self._parts, self.length, slots)

    @abstractmethod
    def _compact_parts(self, parts: Sequence[Tensor], first: int, slots: Sequence[int]) -> None:
        """Move accepted rows of some layers to the front.

        Args:
            parts: Rows of the layers. [layers, 2, kv heads, slots, width]
            first: Slot of the first reserved row.
            slots: Offsets of the accepted rows, ascending.
        """


def _allocate(size: int, dtype: torch.dtype, device: torch.device, slots: int) -> Tensor:
    """Allocate elements without zeroing them; raises `OutOfMemoryError` if there is no room."""
    try:
        # No zeroing: slots are written before they are read, and a CPU maps pages only then.
        return torch.empty(size, dtype=dtype, device=device)
    except RuntimeError as error:
        raise OutOfMemoryError(
            tr("No memory for a KV cache of {0} tokens.", slots),
            "Close other programs, start a new chat, or choose a smaller model.",
            num_tokens=slots,
        ) from error
