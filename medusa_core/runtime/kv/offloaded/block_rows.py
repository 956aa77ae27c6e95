"""A session's rows of the layers below the device: whole blocks there, the last few in a tail.

    rows        0 ……………… stored | stored … length … reserved
    where       blocks, below    | tail, in memory

Rows go to the tail when a pass leaves a layer, and whole blocks of it below when they are
committed. Decided rows that are more than the tail takes go below at once: a block holds the
committed rows before them, too, so that a pass that fails can be taken back.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.runtime.kv.offloaded.block_store import BlockStore
from medusa_core.runtime.kv.offloaded.blocks import as_blocks
from medusa_core.runtime.kv.offloaded.rows import HomeRows, Undecided
from medusa_core.runtime.kv.size import ROUND_ROWS


class BlockRows(HomeRows):
    """See the module, and `HomeRows`.

    Attributes:
        stored: Committed rows in whole blocks below the device; all others are in the tail.
        slot: Its number in the store.
        tails: Of each shape of rows, the tails of its layers. [layers, 2, kv heads, slots, width]
    """

    def __init__(self, store: BlockStore) -> None:
        """Take a slot.

        Raises:
            OutOfMemoryError: None is free.
        """
        super().__init__()
        self.stored = 0
        self.slot = store.take_slot()
        self.tails = store.tails(self.slot)
        self._store = store
        self._free = weakref.finalize(self, store.free_slot, self.slot)
        self._length = self._end = 0  # committed and reserved rows of the pass under way
        self._goes_below = False
        # Layers whose tail must be read back, and those whose decided rows went below.
        self._missing: set[int] = set()
        self._moved: set[int] = set()

    def release(self) -> None:
        self._free()

    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        self._shown = None
        self._settle(length)
        in_tail = length + num_rows - self.stored <= self._store.tail_rows
        if length + num_rows > self._store.num_rows or not (in_tail or decided):
            raise EngineError(
                f"{num_rows} rows don't fit behind {length} of which {self.stored} are stored."
            )
        self._length, self._end = length, length + num_rows
        self._goes_below = not in_tail

    def view_in(self, buffer: Tensor, layer: int) -> Tensor:
        """Room for all rows of a layer up to the last reserved one.

        Args:
            buffer: Where it is, as wide as numbers are. uint8 [bytes]
            layer: Which layer.

        Returns:
            Whole blocks. [2, kv heads, slots, width]
        """
        tail = self._tail(layer)
        two, heads, _, width = tail.shape
        slots = _blocks(self._end) * ROUND_ROWS
        size = two * heads * slots * width
        return buffer[: size * tail.itemsize].view(tail.dtype).view(two, heads, slots, width)

    def complete(self, layer: int, view: Tensor) -> None:
        """Bring rows of the tail to those of a layer that are stored.

        Args:
            layer: Which layer.
            view: Its rows, of which the stored ones are there. [2, kv heads, slots, width]
        """
        count = _blocks(self._length - self.stored)
        _copy(self._tail(layer), 0, view, self.stored // ROUND_ROWS, count)

    def committed_part(self, view: Tensor) -> Tensor:
        return view.view(-1) if self._length else view.view(-1)[:0]

    def fresh_part(self, view: Tensor) -> Tensor:
        return view[:, :, self._length : self._end]

    def leave(self) -> None:
        assert self._shown is not None
        (layer, view), self._shown = self._shown, None
        first = self.stored // ROUND_ROWS
        if self._goes_below:
            whole = self._end // ROUND_ROWS
            self._store.write(self.slot, layer, first, as_blocks(view)[:, first:whole])
            self._moved.add(layer)
            first = whole
        _copy(view, first, self._tail(layer), 0, _blocks(self._end) - first)

    def undecided(self, length: int) -> Sequence[Undecided]:
        if self._goes_below:
            raise EngineError("Rows that are decided can't be chosen from.")
        return [Undecided(self.tails, length - self.stored)]

    def commit(self, length: int, num_rows: int) -> None:
        if not self._goes_below:
            self._store_blocks((length + num_rows) // ROUND_ROWS - self.stored // ROUND_ROWS)
            return
        if len(self._moved) < len(self._store.layers):
            raise EngineError("A pass has not come to all layers whose rows lie below the device.")
        self.stored = self._end // ROUND_ROWS * ROUND_ROWS
        self._goes_below = False
        self._moved.clear()
        self.truncate(length + num_rows)

    def truncate(self, length: int) -> None:
        """Forget all rows from `length` on. What was stored is read back when it is needed."""
        if length < self.stored:
            self.stored = length // ROUND_ROWS * ROUND_ROWS
            self._moved.clear()
            self._missing = set(self._store.layers)

    def fill(self, length: int) -> None:
        self.stored = length // ROUND_ROWS * ROUND_ROWS
        self._moved.clear()
        self._missing.clear()
        for layer in self._store.layers:
            self._tail(layer).zero_()
            heads, _, words = (block := as_blocks(self._tail(layer))[:, :1]).shape
            same = np.broadcast_to(block, (heads, self.stored // ROUND_ROWS, words))
            self._store.write(self.slot, layer, 0, same)

    def rows(self, layer: int, first: int, length: int) -> Tensor:
        tail = self._tail(layer)
        is_below = layer in self._moved or layer in self._missing
        below = _blocks(length) * ROUND_ROWS if is_below else self.stored
        count = _blocks(length - first) * ROUND_ROWS
        found = tail.new_empty(*tail.shape[:2], count, tail.shape[3])
        from_below = max(0, below - first)
        self._store.read(
            self.slot, layer, first // ROUND_ROWS, as_blocks(found)[:, : from_below // ROUND_ROWS]
        )
        found[:, :, from_below:] = tail[:, :, max(0, first - below) :][:, :, : count - from_below]
        return found

    def _tail(self, layer: int) -> Tensor:
        """[2, kv heads, slots, width]"""
        at = self._store.place(layer)
        return self.tails[at.part][at.place]

    def _settle(self, length: int) -> None:
        """Bring rows back that belong into a tail, and went below with others."""
        if length == self.stored:  # nothing belongs there
            self._missing.clear()
        else:
            self._missing |= self._moved
        self._moved.clear()
        self._goes_below = False
        for layer in sorted(self._missing):
            self._store.read(
                self.slot, layer, self.stored // ROUND_ROWS, as_blocks(self._tail(layer))[:, :1]
            )
            self._missing.discard(layer)

    def _store_blocks(self, count: int) -> None:
        """Write the first blocks of the tails, and move the others up."""
        if not count:
            return
        for layer in self._store.layers:
            block = as_blocks(self._tail(layer))[:, :count]
            self._store.write(self.slot, layer, self.stored // ROUND_ROWS, block)
        rows = count * ROUND_ROWS
        for tail in self.tails:
            kept = tail[:, :, :, rows:].clone()
            tail[:, :, :, : kept.shape[3]] = kept
        self.stored += rows


def _copy(source: Tensor, first: int, into: Tensor, at: int, count: int) -> None:
    """Copy blocks of a layer's rows by one thread: to wake others takes longer.

    Args:
        source: From where. [2, kv heads, slots, width]
        first: The first block there.
        into: Where to, likewise.
        at: Its place there.
        count: How many.
    """
    as_blocks(into)[:, at : at + count] = as_blocks(source)[:, first : first + count]


def _blocks(num_rows: int) -> int:
    return -(-num_rows // ROUND_ROWS)
