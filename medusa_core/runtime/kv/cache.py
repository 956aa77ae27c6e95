"""What a cache is: keys and values, and states, with room for a tree behind what is committed.

One tensor holds all layers whose rows have one shape, so that keeping an accepted path is one piece
of work for the whole model. Slots `length … length + n` take the rows of the forward pass under
way; `commit` keeps some. Rows of layers that a store has lie below the device; see
`runtime/kv/offloaded`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.offloaded.rows import OffloadedRows
from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    STEP_ROWS,
    num_checkpoints,
    row_groups,
    state_bytes,
    state_itemsize,
    state_rows,
)
from medusa_core.runtime.kv.states import RecurrentStates


@runtime_checkable
class ReadableCache(Protocol):
    """A cache whose rows may be read between two passes, for example by a drafter.

    Attributes:
        length: Committed rows.
    """

    length: int

    def rows_of(self, layer: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """Committed keys and values of a layer, as its attention multiplies them.

        Args:
            layer: One that has rows of its own.
            first: The first row that is wanted.

        Returns:
            Each [kv heads, length − first, head_dim], in the cache's dtype or, where rows are
            quantized, in the one that attention reads: views or copies, good until the next pass.
        """


class KvCache(ABC):
    """Keys, values and states of one session.

    Attributes:
        length: Committed rows, shared ones among them.
        capacity: Slots in all, shared rows among them.
        prefix: Holds the first rows, which several caches read and none writes; None where this
            cache holds all of its rows.
        num_shared: How many rows of `prefix` come before the own ones.
        states: Of recurrent layers; None where there are none.
        offloaded: Its rows of layers that lie below the device, from the first pass on; None where
            none do.
    """

    kind_of_states: type[RecurrentStates] = RecurrentStates

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
        store: RowStore | None = None,
    ) -> None:
        """Take the memory.

        Args:
            config: Sizes of the target.
            dtype: Of keys and values.
            device: Where they lie.
            capacity: Slots.
            num_spare: Slots behind these, for padding rows. All slots then begin as zeros, as
                steps of fixed width read beyond what is written.
            memory: Where the cache lies, the states first, then `capacity` slots with the spare
                ones among them; None takes memory of its own.
            width_of: Numbers of a head in a slot, by its head_dim.
            compute: Dtype that the model computes in.
            store: Home of the rows of some layers, which take no room here; None where all do.
        """
        self._num_spare = num_spare
        slots = capacity + num_spare
        if memory is not None:
            capacity, slots = capacity - num_spare, capacity
        self._store = store
        self._groups = list(row_groups(config).values())
        if store is not None:
            store.lay_out(dtype, device)
        # Of every layer with rows of its own the part that it is in, and its place there: in the
        # memory here, or in a tail of what lies below.
        self._places: dict[int, tuple[int, int]] = {}
        for part, layers in enumerate(self._groups):
            here = [layer for layer in layers if not self.is_below(layer)]
            below = [layer for layer in layers if self.is_below(layer)]
            for side in (here, below):
                self._places |= {layer: (part, place) for place, layer in enumerate(side)}
        self._shapes = [
            (
                sum(not self.is_below(layer) for layer in layers),
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
        self.offloaded: OffloadedRows | None = None

    def is_below(self, layer: int) -> bool:
        """Do the rows of a layer lie below the device?"""
        return self._store is not None and layer in self._store.layers

    def release(self) -> None:
        """Forget all rows: whoever lent the memory takes it back."""
        if self.prefix is not None:
            self.share(self.prefix, 0)
        if self.offloaded is not None:
            self.offloaded.release()
            self.offloaded, self.length = None, 0

    def _parts_of(self, memory: Tensor, slots: int) -> list[Tensor]:
        """Of each shape its layers' rows. [layers, 2, kv heads, slots, width]"""
        parts, at = [], self._states_size
        for layers, two, heads, width in self._shapes:
            size = layers * two * heads * slots * width
            parts.append(memory[at : at + size].view(layers, two, heads, slots, width))
            at += size
        return parts

    def _new_states(self, config: ModelConfig, compute: torch.dtype) -> RecurrentStates | None:
        layers = config.state_layers
        if not layers:
            return None
        item = state_itemsize(compute.itemsize)
        dtype = torch.float64 if item > 4 else torch.float32
        nbytes = state_bytes(config, compute.itemsize)
        with torch.inference_mode(False):  # else only inference could write into it
            own = self._memory[: self._states_size].view(torch.uint8)[:nbytes].view(dtype)
        return self.kind_of_states(
            layers[0], len(layers), num_checkpoints(layers[0], len(layers), item), own
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the device that the cache takes; those of tails are their store's."""
        return self._memory.nbytes

    @property
    def most_rows(self) -> int:
        """Rows of a tree that it can take back."""
        most = self.capacity if self.states is None else min(STEP_ROWS, self.capacity)
        return most if self._store is None else min(most, self._store.step_rows)

    def stretch(self, memory: Tensor, slots: int) -> None:
        """Resize the cache to a longer or shorter piece of memory that begins at the same place.

        Args:
            memory: For the states and these slots.
            slots: In all, the spare ones among them; no fewer than the committed rows need.
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
        """Hold what another cache of this kind holds; rows below the device go over."""
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
        """Rows that `copy_prefix` can copy to another cache, of the first `num_rows`.

        Fewer than that where the states behind them aren't known; none where rows lie below the
        device.
        """
        if self._store is not None:
            return 0
        num_rows = min(self.length, num_rows)
        return num_rows if self.states is None else self.states.known(num_rows, self.length)

    @property
    def can_share(self) -> bool:
        """Can its first rows lie in another cache?"""
        return False

    def share(self, prefix: KvCache, num_rows: int) -> None:
        """Hold another cache's first rows and nothing else, without a copy.

        Args:
            prefix: A cache of this kind, in which nothing changes any more.
            num_rows: A multiple of 16; 0 to let go of what was shared.
        """
        num_slots = self.capacity - self.num_shared
        while num_rows <= prefix.num_shared and prefix.prefix is not None:
            prefix = prefix.prefix
        self.prefix = prefix if num_rows else None
        self.length = self.num_shared = num_rows
        self.capacity = num_rows + num_slots

    def split(self, prefix: KvCache, memory: Tensor) -> None:
        """Let the first of the own rows lie in another cache, which is shared from then on.

        Args:
            prefix: Takes the rows; its memory is the beginning of this one's, and it has as many
                slots as it takes rows.
            memory: The rest of this one's memory, for the other slots.
        """
        raise EngineError("This cache can't share rows.")

    def copy_prefix(self, other: KvCache, num_rows: int) -> None:
        """Replace all rows by copies of another cache's first ones, bit by bit.

        Rows that both share already stay shared.

        Args:
            other: A cache of this kind.
            num_rows: As `other.num_reusable` returns it; they fit in here.
        """
        self.truncate(self.num_shared)
        self._copy_rows(other, num_rows)
        if self.states is not None and other.states is not None:
            self.states.take_over(other.states)
            self.states.truncate(num_rows, other.length)
        self.length = num_rows

    def _copy_rows(self, other: KvCache, num_rows: int) -> None:
        """Copy another cache's rows, those behind the shared ones up to `num_rows`."""
        for mine, theirs in zip(self._parts, other._parts, strict=True):
            self._first_rows(mine, num_rows).copy_(self._first_rows(theirs, num_rows))

    def reserve(self, num_rows: int, decided: bool = False) -> None:
        """Open `num_rows` slots behind the committed rows for one forward pass.

        Args:
            num_rows: They.
            decided: All of them will be committed, such as those of a prompt.
        """
        if self.length + num_rows > self.capacity:
            raise EngineError(
                f"{num_rows} rows don't fit behind {self.length} of {self.capacity} slots."
            )
        if self.states is not None:
            self.states.begin(num_rows, decided)
        if self._store is not None:
            self.offloaded = self.offloaded or self._store.new_rows()
            self.offloaded.reserve(self.length, num_rows, decided)

    def commit(self, slots: Sequence[int]) -> None:
        """Keep some of the reserved rows, in order, and forget the rest.

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
        if slots and slots[-1] != len(slots) - 1:  # else they lie there already
            self._move(slots)
            if self.offloaded is not None:
                for parts, first in self.offloaded.undecided(self.length):
                    self._move_in(parts, first, slots)

    def truncate(self, length: int) -> None:
        """Forget all rows from `length` on; with states maybe more: see `self.length` behind it."""
        length = min(self.length, length)
        if self.states is not None:
            length = self.states.truncate(length, self.length)
        if self.offloaded is not None:
            self.offloaded.truncate(length)
        self.length = length

    def checkpoint(self) -> None:
        """Keep the states of now, so that a truncation needs to go no further back."""
        if self.states is not None:
            self.states.checkpoint(self.length)

    def fill(self, length: int) -> None:
        """Hold `length` rows of nothing: for measurements."""
        for part in self._parts:
            self._first_rows(part, length).zero_()
        if self._store is not None:
            self.offloaded = self.offloaded or self._store.new_rows()
            self.offloaded.fill(length)
        self.length = length
        if self.states is not None:
            self.states.clear()
            self.checkpoint()  # so that steps behind it can be taken back

    @abstractmethod
    def committed(self) -> Tensor:
        """A copy of what is committed. [layers, 2, kv heads, length, head_dim]

        Where layers differ or hold states: all numbers one after the other. [any]
        """

    def whole_parts(self) -> list[Tensor]:
        """Of each shape its layers' committed rows, wherever they lie, and maybe a few more.

        [layers, 2, kv heads, slots, width]
        """
        return [self._whole_part(part) for part in range(len(self._parts))]

    def _whole_part(self, part: int) -> Tensor:
        layers, here = self._groups[part], self._parts[part]
        if not any(self.is_below(layer) for layer in layers):
            return here
        slots = min(here.shape[3], -(-self.length // ROUND_ROWS) * ROUND_ROWS)
        rows = [
            self._rows_below(layer, 0) if self.is_below(layer) else here[self._places[layer][1]]
            for layer in layers
        ]
        return torch.stack([each[:, :, :slots] for each in rows])

    def _rows_below(self, layer: int, first: int) -> Tensor:
        """A copy of a layer's committed rows from a block on. [2, kv heads, slots, width]"""
        if self.offloaded is None:  # nothing was ever written
            part = self._parts[self._places[layer][0]]
            return part.new_empty(2, part.shape[2], 0, part.shape[4])
        rows = self.offloaded.rows(layer, first // ROUND_ROWS * ROUND_ROWS, self.length)
        return rows.to(self._memory.device)

    def joined(self, rows: Sequence[Tensor]) -> Tensor:
        """The committed rows of each shape, and the states behind them, as `committed` has it."""
        if len(rows) == 1 and self.states is None:
            return rows[0].clone()
        return torch.cat([part.flatten() for part in (*rows, *self.settled_states())])

    def settled_states(self) -> list[Tensor]:
        """Copies of states and tails behind all committed rows."""
        return [] if self.states is None else self.states.settled()

    @abstractmethod
    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        """A view of a part with its first `length` rows, and maybe a few more."""

    def _move(self, slots: Sequence[int]) -> None:
        """Bring some of the reserved rows to the front."""
        self._move_in(self._parts, self.length, slots)

    @abstractmethod
    def _move_in(self, parts: Sequence[Tensor], first: int, slots: Sequence[int]) -> None:
        """Bring some rows to the front of those from `first` on.

        Args:
            parts: Of some layers. [layers, 2, kv heads, slots, width]
            first: The row that the first of them goes to.
            slots: As in `commit`.
        """


def _allocate(size: int, dtype: torch.dtype, device: torch.device, slots: int) -> Tensor:
    try:
        # Slots are written before they are read, and a CPU takes their pages only then.
        return torch.empty(size, dtype=dtype, device=device)
    except RuntimeError as error:
        raise OutOfMemoryError(
            f"No memory for a KV cache of {slots} tokens.",
            "Close other programs, start a new chat, or choose a smaller model.",
            num_tokens=slots,
        ) from error
