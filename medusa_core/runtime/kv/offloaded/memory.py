"""Cached rows in the computer's memory, below a card.

They lie row by row, as a pass makes them: so all rows of a session and layer are one piece, which a
card copies by itself, and a processor attends to them where they lie.

Source: Sheng et al., "FlexGen" (2023), section 4.1.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import RowShape
from medusa_core.runtime.kv.offloaded.rows import HomeRows, Undecided
from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.kv.size import ROUND_ROWS, head_bytes, row_groups
from medusa_core.system import cuda


class MemoryStore(RowStore):
    """Rows in pinned memory; see `RowStore`."""

    def __init__(
        self,
        config: ModelConfig,
        layers: tuple[int, ...],
        num_sessions: int,
        num_rows: int,
        cache_format: str = "",
    ) -> None:
        """See `RowStore`.

        Args:
            config: Sizes of the target.
            layers: As there, and so are the next two.
            num_sessions: As there.
            num_rows: As there.
            cache_format: How rows are kept, `q4`; empty for plain numbers.
        """
        super().__init__(layers, num_sessions, num_rows)
        self._cache_format = cache_format
        self._groups = row_groups(config, self.layers)
        self._places = {
            layer: (part, place)
            for part, here in enumerate(self._groups.values())
            for place, layer in enumerate(here)
        }
        self._homes: list[Tensor] = []

    def lay_out(self, dtype: torch.dtype, device: torch.device) -> None:
        if not self._homes:
            self._homes = [
                self._new_home(shape, len(here), dtype) for shape, here in self._groups.items()
            ]
        elif dtype is not self._homes[0].dtype:
            kept = self._homes[0].dtype
            raise EngineError(f"Cached rows are kept as {kept}, and these are {dtype}.")

    def _new_home(self, shape: RowShape, num_layers: int, dtype: torch.dtype) -> Tensor:
        """Of the layers of a shape. [sessions, layers, rows, 2, kv heads, width]"""
        width = head_bytes(shape.head_dim, dtype.itemsize, self._cache_format)
        sizes = (self.num_sessions, num_layers, self.num_rows, 2, shape.num_kv_heads, width)
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                return cuda.pinned(torch.Size(sizes).numel()).view(sizes).view(dtype)
        except RuntimeError as error:
            raise OutOfMemoryError(
                f"The computer's memory has no room for cached rows of {self.num_sessions} "
                "conversations.",
                "Close other programs, or load the model for fewer conversations.",
                num_sessions=self.num_sessions,
            ) from error

    @property
    def device_bytes(self) -> int:
        return 0

    @property
    def host_bytes(self) -> int:
        return sum(home.nbytes for home in self._homes)

    @property
    def step_rows(self) -> int:
        return self.num_rows

    def row_bytes(self, layer: int) -> int:
        part, place = self._places[layer]
        return self._homes[part][0, place, 0].nbytes

    def new_rows(self) -> MemoryRows:
        return MemoryRows(self)

    def parts(self, slot: int) -> list[Tensor]:
        """Of each shape a session's rows. [layers, 2, kv heads, slots, width]"""
        return [home[slot].permute(0, 2, 3, 1, 4) for home in self._homes]

    def place(self, layer: int) -> tuple[int, int]:
        """In which of the parts the rows of a layer lie, and where there."""
        return self._places[layer]


class MemoryRows(HomeRows):
    """See `HomeRows`. A view is a part of what lies here."""

    def __init__(self, store: MemoryStore) -> None:
        """Take a slot.

        Raises:
            OutOfMemoryError: None is free.
        """
        super().__init__()
        slot = store.take_slot()
        self._store = store
        self._parts = store.parts(slot)
        self._free = weakref.finalize(self, store.free_slot, slot)
        self._length = self._end = 0  # committed and reserved rows of the pass under way

    def release(self) -> None:
        self._free()

    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        self._shown = None
        if length + num_rows > self._store.num_rows:
            raise EngineError(
                f"{num_rows} rows don't fit behind {length} of {self._store.num_rows}."
            )
        self._length, self._end = length, length + num_rows

    def home(self, layer: int) -> Tensor:
        """The rows of a layer up to the last reserved one. [2, kv heads, slots, width]"""
        return self._all_of(layer)[:, :, : self._end]

    def committed_part(self, view: Tensor) -> Tensor:
        rows = view[:, :, : self._length]
        return rows.as_strided((rows.numel(),), (1,))

    def fresh_part(self, view: Tensor) -> Tensor:
        rows = view[:, :, self._length : self._end]
        return rows.as_strided((rows.numel(),), (1,))

    def leave(self) -> None:
        self._shown = None

    def undecided(self, length: int) -> Sequence[Undecided]:
        self._store.settle()
        return [Undecided(self._parts, length)]

    def commit(self, length: int, num_rows: int) -> None:
        """They lie where they belong."""

    def truncate(self, length: int) -> None:
        """Rows behind those that are committed are nobody's."""

    def fill(self, length: int) -> None:
        self._store.settle()
        for part in self._parts:
            part[:, :, :, :length].zero_()

    def rows(self, layer: int, first: int, length: int) -> Tensor:
        self._store.settle()
        end = -(-length // ROUND_ROWS) * ROUND_ROWS
        return self._all_of(layer)[:, :, first:end].clone()

    def _all_of(self, layer: int) -> Tensor:
        part, place = self._store.place(layer)
        return self._parts[part][place]
