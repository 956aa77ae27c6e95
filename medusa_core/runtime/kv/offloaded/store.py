"""What is home to the cached rows of some layers, for a number of sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import RowShape
from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    head_bytes,
    offloaded_row_bytes,
    region_bytes,
    row_groups,
    tail_slots,
)

# Rows of a layer in words: [heads of keys and of values, blocks, words of a head in a block].
RowBlocks = NDArray[np.uint64]


class RowPlace(NamedTuple):
    """Where the rows of a layer lie.

    Attributes:
        part: In which of the tails, one per shape of rows.
        place: Where in it.
        row_bytes: Bytes of a row.
        offset: First byte among those of a slot.
    """

    part: int
    place: int
    row_bytes: int
    offset: int


class RowStore(ABC):
    """Home of the rows of some layers; one per target.

    Rows lie here in blocks of sixteen. Those behind the last whole block, and those of a step that
    isn't decided, lie in a tail on the device, as a cache has them.

    Attributes:
        layers: Whose rows lie here, ascending.
        num_sessions: Sessions that have a slot.
        num_rows: Most rows of a session.
        tail_rows: Slots of a tail.
        slot_bytes: Bytes of a session's rows at their most; 0 before `lay_out`.
        written_bytes: Bytes of blocks that were written so far.
        written_s: Seconds that took.
    """

    def __init__(
        self,
        config: ModelConfig,
        layers: tuple[int, ...],
        num_sessions: int,
        num_rows: int,
        tree_rows: int = 1,
        cache_format: str = "",
    ) -> None:
        """Know what will lie here; `lay_out` takes the room.

        Args:
            config: Sizes of the target.
            layers: Whose rows lie here; each has rows of its own.
            num_sessions: Sessions at once.
            num_rows: Most rows of a session, a multiple of 16.
            tree_rows: Most rows of a step of one sequence.
            cache_format: How rows are kept, `q4`; empty for plain numbers.
        """
        self.layers = tuple(sorted(layers))
        self.num_sessions = num_sessions
        self.num_rows = num_rows
        self.tail_rows = tail_slots(tree_rows)
        self.slot_bytes = 0
        self.written_bytes, self.written_s = 0, 0.0
        self._config = config
        self._cache_format = cache_format
        self._dtype: torch.dtype | None = None
        self._places: dict[int, RowPlace] = {}
        self._tails: list[Tensor] = []
        self._free = list(reversed(range(num_sessions)))

    def lay_out(self, dtype: torch.dtype, device: torch.device) -> None:
        """Take the room, once: the pool of the caches asks for it, or the first cache.

        Args:
            dtype: Of keys and values as they are kept.
            device: Where they are computed with.

        Raises:
            TierError: The disk has no room for them, or can't be written.
            OutOfMemoryError: The device has no room for the tails.
        """
        if self._dtype is None:
            groups = row_groups(self._config)
            for part, layers in enumerate(groups.values()):
                here = [layer for layer in layers if layer in self.layers]
                for place, layer in enumerate(here):
                    self._add(layer, part, place, dtype)
            self._take_room()
            counts = Counter(at.part for at in self._places.values())
            self._tails = [
                self._new_tails(shape, counts[part], dtype, device)
                for part, shape in enumerate(groups)
            ]
            self._dtype = dtype
        elif dtype is not self._dtype:
            raise EngineError(f"Cached rows are kept as {self._dtype}, and these are {dtype}.")

    def _add(self, layer: int, part: int, place: int, dtype: torch.dtype) -> None:
        row = offloaded_row_bytes(self._config, dtype.itemsize, self._cache_format, (layer,))
        self._places[layer] = RowPlace(part, place, row, self.slot_bytes)
        self.slot_bytes += region_bytes(row, self.num_rows)

    def _new_tails(
        self, shape: RowShape, num_layers: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        """Of the layers of a shape. [sessions, layers, 2, kv heads, slots, width]"""
        width = head_bytes(shape.head_dim, dtype.itemsize, self._cache_format) // dtype.itemsize
        sizes = (num_layers, 2, shape.num_kv_heads, self.tail_rows, width)
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                return torch.empty(self.num_sessions, *sizes, dtype=dtype, device=device)
        except RuntimeError as error:
            raise OutOfMemoryError(
                f"No memory for the last cached rows of {self.num_sessions} conversations.",
                "Close other programs, or load the model for fewer conversations.",
                num_sessions=self.num_sessions,
            ) from error

    @property
    def device_bytes(self) -> int:
        """Bytes of the tails."""
        return sum(tail.nbytes for tail in self._tails)

    def place(self, layer: int) -> RowPlace:
        """Where the rows of a layer lie."""
        return self._places[layer]

    def tails(self, slot: int) -> list[Tensor]:
        """Of each shape the tails of its layers. [layers, 2, kv heads, slots, width]"""
        return [tail[slot] for tail in self._tails]

    @property
    def num_free(self) -> int:
        """Slots that nobody has."""
        return len(self._free)

    def take_slot(self) -> int:
        """A slot for a session, which holds nothing yet.

        Raises:
            OutOfMemoryError: All are taken.
        """
        try:
            return self._free.pop()
        except IndexError:
            raise lacking_slots(self.num_sessions) from None

    def free_slot(self, slot: int) -> None:
        """Take a slot back."""
        self._free.append(slot)

    @abstractmethod
    def _take_room(self) -> None:
        """Have room for the slots; see `lay_out`."""

    @abstractmethod
    def read(
        self, slot: int, layer: int, first: int, into: RowBlocks, staging: RowBlocks | None = None
    ) -> float:
        """Bring some blocks of a layer.

        Args:
            slot: Whose.
            layer: Of which layer.
            first: The first block.
            into: Takes them. [heads, blocks, words]
            staging: Where they may lie before they are laid out, from `new_staging`; None for what
                the thread that writes has.

        Returns:
            Seconds in which the disk was read.

        Raises:
            TierError: They can't be read, or aren't there any more.
        """

    @abstractmethod
    def write(self, slot: int, layer: int, first: int, blocks: RowBlocks) -> None:
        """Store some blocks of a layer; the arguments are those of `read`.

        Raises:
            TierError: The disk is full, or fails.
        """

    @abstractmethod
    def new_staging(self) -> RowBlocks:
        """Memory for another thread that reads."""


def lacking_slots(num_sessions: int) -> OutOfMemoryError:
    """All sessions whose rows have room below the device are in use."""
    return OutOfMemoryError(
        f"Cached rows have room for {num_sessions} conversations, and all are in use.",
        "Wait for the answers that are being written, or load the model for more of them.",
        num_sessions=num_sessions,
    )


def as_blocks(rows: Tensor) -> RowBlocks:
    """Rows of a layer in words: a view.

    Args:
        rows: On a CPU, contiguous. [2, kv heads, slots, width]

    Returns:
        [heads, blocks, words]
    """
    two, num_kv, slots, width = rows.shape
    heads = rows.view(torch.uint8).numpy()
    size = ROUND_ROWS * width * rows.itemsize
    return heads.reshape(two * num_kv, slots // ROUND_ROWS, size).view(np.uint64)
