"""Offloaded KV rows in main memory, below a GPU.

They are stored row by row, in the order in which passes append them: all rows of a session and
layer are contiguous, so that one copy brings them to a GPU, and the processor can attend to them in
place.

Source: Sheng et al., "FlexGen" (2023), section 4.1.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape
from medusa_core.runtime.kv.offloaded.offloaded_kv import OffloadedKv, SpeculativeRows
from medusa_core.runtime.kv.offloaded.prefetcher import HostPrefetcher, KvTransfers, LayerKv
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import head_bytes, row_groups, whole_blocks
from medusa_core.system import cuda


class MemoryStore(KvStore):
    """Rows in pinned memory; see `KvStore`."""

    def __init__(
        self,
        config: ModelConfig,
        layers: tuple[int, ...],
        num_sessions: int,
        num_rows: int,
        cache_format: str = "",
    ) -> None:
        """Describe the store; see `KvStore`."""
        super().__init__(config, layers, num_sessions, num_rows, cache_format)
        self._groups = row_groups(config, self.layers)
        self._places = {
            layer: (part, place)
            for part, layers_of_shape in enumerate(self._groups.values())
            for place, layer in enumerate(layers_of_shape)
        }
        self._memory: list[Tensor] = []

    def allocate(self, dtype: torch.dtype, device: torch.device) -> None:
        """Allocate pinned memory; see `KvStore`."""
        if not self._memory:
            self._memory = [
                self._allocate_part(shape, len(layers), dtype)
                for shape, layers in self._groups.items()
            ]
        elif dtype is not self._memory[0].dtype:
            kept = self._memory[0].dtype
            raise EngineError(tr("Cached rows are kept as {0}, and these are {1}.", kept, dtype))

    def _allocate_part(self, shape: KvShape, num_layers: int, dtype: torch.dtype) -> Tensor:
        """Memory for the layers of a shape. [sessions, layers, rows, 2, kv heads, width]"""
        width = head_bytes(shape.head_dim, dtype.itemsize, self._cache_format)
        sizes = (self.num_sessions, num_layers, self.num_rows, 2, shape.num_kv_heads, width)
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                return cuda.pinned(torch.Size(sizes).numel()).view(sizes).view(dtype)
        except RuntimeError as error:
            raise OutOfMemoryError(
                tr(
                    "The computer's memory has no room for cached rows of {0} conversations.",
                    self.num_sessions,
                ),
                "Close other programs, or load the model for fewer conversations.",
                num_sessions=self.num_sessions,
            ) from error

    @property
    def device_bytes(self) -> int:
        """0: all of it is in host memory."""
        return 0

    @property
    def host_bytes(self) -> int:
        """Bytes of the pinned memory."""
        return sum(part.nbytes for part in self._memory)

    @property
    def step_rows(self) -> int:
        """Any number of rows: all of a session are in memory."""
        return self.num_rows

    def row_bytes(self, layer: int) -> int:
        """Bytes of a row in a layer."""
        part, place = self._places[layer]
        return self._memory[part][0, place, 0].nbytes

    def new_session(self) -> MemoryKv:
        """Return the empty rows of another session; see `KvStore`."""
        return MemoryKv(self)

    def parts(self, slot: int) -> list[Tensor]:
        """Rows of a session, of each shape. [layers, 2, kv heads, slots, width]"""
        return [part[slot].permute(0, 2, 3, 1, 4) for part in self._memory]

    def place(self, layer: int) -> tuple[int, int]:
        """Return the index of a layer's part, and the layer's index in it."""
        return self._places[layer]


class MemoryKv(OffloadedKv):
    """One session's rows in main memory; a view is a slice of the store's memory."""

    def __init__(self, store: MemoryStore) -> None:
        """Take a slot.

        Raises:
            OutOfMemoryError: All slots are in use.
        """
        super().__init__()
        slot = store.acquire_slot()
        self._store = store
        self._parts = store.parts(slot)
        self._free = weakref.finalize(self, store.release_slot, slot)
        self._length = self._end = 0  # committed rows, and these with the reserved ones

    def release(self) -> None:
        """Free the slot."""
        self._free()

    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        """Begin a pass; see `OffloadedKv`."""
        self._bound = None
        if length + num_rows > self._store.num_rows:
            raise EngineError(
                tr("{0} rows don't fit behind {1} of {2}.", num_rows, length, self._store.num_rows)
            )
        self._length, self._end = length, length + num_rows

    def in_place(self, layer: int) -> Tensor:
        """Rows of a layer up to the last reserved one. [2, kv heads, slots, width]"""
        return self._layer(layer)[:, :, : self._end]

    def committed_part(self, view: Tensor) -> Tensor:
        """The committed rows of a view, flat."""
        rows = view[:, :, : self._length]
        return rows.as_strided((rows.numel(),), (1,))

    def reserved_rows(self, view: Tensor) -> Tensor:
        """The reserved rows of a view, flat."""
        rows = view[:, :, self._length : self._end]
        return rows.as_strided((rows.numel(),), (1,))

    def write_back(self) -> None:
        """Unbind the layer: its new rows are in place."""
        self._bound = None

    def speculative(self, length: int) -> Sequence[SpeculativeRows]:
        """The reserved rows, after copies from the GPU."""
        self._store.wait_for_copies()
        return [SpeculativeRows(self._parts, length)]

    def commit(self, length: int, num_rows: int) -> None:
        """Do nothing: the rows are in place."""

    def truncate(self, length: int) -> None:
        """Do nothing: rows after the committed ones are overwritten."""

    def fill(self, length: int) -> None:
        """Commit rows of zeros, for measurements."""
        self._store.wait_for_copies()
        for part in self._parts:
            part[:, :, :, :length].zero_()

    def read(self, layer: int, first: int, length: int) -> Tensor:
        """Copy committed rows; see `OffloadedKv`."""
        self._store.wait_for_copies()
        return self._layer(layer)[:, :, first : whole_blocks(length)].clone()

    def _layer(self, layer: int) -> Tensor:
        """Rows of a layer. [2, kv heads, slots, width]"""
        part, place = self._store.place(layer)
        return self._parts[part][place]


class MemoryPrefetcher(HostPrefetcher):
    """Binds rows in place; nothing is moved."""

    def __init__(self) -> None:
        self._order: Sequence[LayerKv] = ()
        self._acquired: list[MemoryKv] = []
        self._written_bytes = 0

    @property
    def transfers(self) -> KvTransfers:
        """Bytes of new rows so far; nothing is read."""
        return KvTransfers(written_bytes=self._written_bytes)

    def prefetched(self, index: int) -> Sequence[Tensor]:
        """Rows in place; see `HostPrefetcher`."""
        wanted = self._order[index]
        return [rows.in_place(wanted.layer) for rows in _rows_of(wanted)]

    def begin(self, order: Sequence[LayerKv]) -> None:
        """Begin a pass; see `KvPrefetcher`."""
        self._order, self._acquired = order, []

    def acquire(self, rows: LayerKv) -> None:
        """Bind the caches' rows in place."""
        self._acquired = _rows_of(rows)
        for each in self._acquired:
            view = each.in_place(rows.layer)
            each.bind(rows.layer, view)
            self._written_bytes += each.reserved_rows(view).nbytes

    def release(self) -> None:
        """Unbind the acquired rows."""
        for rows in self._acquired:
            rows.write_back()
        self._acquired = []


def _rows_of(wanted: LayerKv) -> list[MemoryKv]:
    """The offloaded rows of each cache."""
    return [rows for rows in wanted.rows if isinstance(rows, MemoryKv)]  # a target has one store
