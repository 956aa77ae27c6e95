"""Homes of cached rows that take them in blocks of sixteen, as a disk does."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import RowShape
from medusa_core.runtime.kv.offloaded.blocks import RowBlocks
from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    head_bytes,
    offloaded_row_bytes,
    region_bytes,
    row_groups,
    tail_slots,
)


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


class BlockStore(RowStore):
    """Rows in blocks; see `RowStore`.

    Those behind the last whole block, and those of a step that isn't decided, lie in a tail in the
    memory of what writes blocks, as a cache has them.

    Attributes:
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
        """See `RowStore`.

        Args:
            config: Sizes of the target.
            layers: As there, and so are the next two.
            num_sessions: As there.
            num_rows: As there.
            tree_rows: Most rows of a step of one sequence.
            cache_format: How rows are kept, `q4`; empty for plain numbers.
        """
        super().__init__(layers, num_sessions, num_rows)
        self.tail_rows = tail_slots(tree_rows)
        self.slot_bytes = 0
        self.written_bytes, self.written_s = 0, 0.0
        self._config = config
        self._cache_format = cache_format
        self._dtype: torch.dtype | None = None
        self._device = torch.device("cpu")
        self._places: dict[int, RowPlace] = {}
        self._tails: list[Tensor] = []

    def lay_out(self, dtype: torch.dtype, device: torch.device) -> None:
        if self._dtype is None:
            groups = row_groups(self._config, self.layers)
            for part, here in enumerate(groups.values()):
                for place, layer in enumerate(here):
                    self._add(layer, part, place, dtype)
            self._take_room()
            self._tails = [
                self._new_tails(shape, len(here), dtype) for shape, here in groups.items()
            ]
            self._dtype, self._device = dtype, device
        elif dtype is not self._dtype:
            raise EngineError(f"Cached rows are kept as {self._dtype}, and these are {dtype}.")

    def _add(self, layer: int, part: int, place: int, dtype: torch.dtype) -> None:
        row = offloaded_row_bytes(self._config, dtype.itemsize, self._cache_format, (layer,))
        self._places[layer] = RowPlace(part, place, row, self.slot_bytes)
        self.slot_bytes += region_bytes(row, self.num_rows)

    def _new_tails(self, shape: RowShape, num_layers: int, dtype: torch.dtype) -> Tensor:
        """Of the layers of a shape. [sessions, layers, 2, kv heads, slots, width]"""
        width = head_bytes(shape.head_dim, dtype.itemsize, self._cache_format) // dtype.itemsize
        sizes = (num_layers, 2, shape.num_kv_heads, self.tail_rows, width)
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                return torch.empty(self.num_sessions, *sizes, dtype=dtype)
        except RuntimeError as error:
            raise OutOfMemoryError(
                f"No memory for the last cached rows of {self.num_sessions} conversations.",
                "Close other programs, or load the model for fewer conversations.",
                num_sessions=self.num_sessions,
            ) from error

    @property
    def device_bytes(self) -> int:
        return self._tail_bytes if self._device.type == "cpu" else 0

    @property
    def host_bytes(self) -> int:
        return 0 if self._device.type == "cpu" else self._tail_bytes

    @property
    def _tail_bytes(self) -> int:
        return sum(tail.nbytes for tail in self._tails)

    @property
    def step_rows(self) -> int:
        return self.tail_rows - ROUND_ROWS + 1

    def row_bytes(self, layer: int) -> int:
        return self._places[layer].row_bytes

    def place(self, layer: int) -> RowPlace:
        """Where the rows of a layer lie."""
        return self._places[layer]

    def tails(self, slot: int) -> list[Tensor]:
        """Of each shape the tails of its layers. [layers, 2, kv heads, slots, width]"""
        return [tail[slot] for tail in self._tails]

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
