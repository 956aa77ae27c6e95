"""The preallocated key and value cache with room for a tree behind what is committed.

One tensor holds all layers, so that keeping an accepted path is one gather for the whole model.
Slots `length … length + n` take the rows of the forward pass under way; `commit` keeps some.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.native.library import native_library


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


class KvCache:
    """Keys and values of one session.

    Attributes:
        length: Committed rows.
        address: Where the tensor lies, for compiled code.
        capacity: Slots in all.
    """

    def __init__(
        self, config: ModelConfig, precision: Precision, capacity: int, num_spare: int = 0
    ) -> None:
        """Take the memory.

        Args:
            config: Sizes of the target.
            precision: Dtype and device.
            capacity: Slots.
            num_spare: Slots behind these, for padding rows. All slots then begin as zeros, as
                steps of fixed width read beyond what is written.
        """
        self._num_spare = num_spare
        slots = capacity + num_spare
        shape = (config.num_layers, 2, config.num_kv_heads, slots, config.head_dim)
        self._data = _allocate(shape, precision, num_spare > 0)
        self._precision = precision
        self._fixed: tuple[Tensor, int] | None = None
        self._pending: _Pending | None = None
        self._num_reserved = 0
        compiled = precision.device.type == "cpu" and precision.cache == torch.float32
        self._library = native_library() if compiled else None
        self.address = self._data.data_ptr()
        self.length = 0

    @property
    def capacity(self) -> int:
        return self._data.shape[3] - self._num_spare

    @property
    def nbytes(self) -> int:
        """Bytes that the cache takes."""
        return self._data.nbytes

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` slots, keeping what is committed; never shrinks."""
        if capacity <= self.capacity:
            return
        shape = (*self._data.shape[:3], capacity + self._num_spare, self._data.shape[4])
        data = _allocate(shape, self._precision, self._num_spare > 0)
        data[:, :, :, : self.length] = self._data[:, :, :, : self.length]
        self._data = data
        self.address = data.data_ptr()
        self._pending = None  # its views would keep the old tensor alive

    def reserve(self, num_rows: int) -> None:
        """Open `num_rows` slots behind the committed rows for one forward pass."""
        if self.length + num_rows > self.capacity:
            raise EngineError(
                f"{num_rows} rows don't fit behind {self.length} of {self.capacity} slots."
            )
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

    def commit(self, slots: Sequence[int]) -> None:
        """Keep some of the reserved rows, in order, and forget the rest.

        Args:
            slots: Offsets among the reserved rows, ascending.
        """
        start = self.length
        count = len(slots)
        if tuple(slots) != tuple(range(count)):
            self._move(slots)
        self.length = start + count

    def _move(self, slots: Sequence[int]) -> None:
        """Bring some of the reserved rows to the front."""
        if self._library is not None:
            ids = (ctypes.c_int64 * len(slots))(*slots)
            planes = self._data.shape[0] * self._data.shape[1] * self._data.shape[2]
            self._library.keep_rows(
                self.address,
                planes,
                self.capacity,
                self._data.shape[4],
                self.length,
                ctypes.addressof(ids),
                len(slots),
            )
            return
        # Through a copy: source and destination slots overlap.
        index = torch.tensor(slots, device=self._data.device).add_(self.length)
        kept = self._data.index_select(3, index)
        self._data[:, :, :, self.length : self.length + len(slots)] = kept

    def truncate(self, length: int) -> None:
        """Forget all rows from `length` on."""
        self.length = min(self.length, length)

    def fill(self, length: int) -> None:
        """Hold `length` rows of nothing: for measurements."""
        self._data[:, :, :, :length] = 0
        self.length = length

    def committed(self) -> Tensor:
        """A copy of what is committed. [layers, 2, kv heads, length, head_dim]"""
        return self._data[:, :, :, : self.length].clone()


def _allocate(shape: tuple[int, ...], precision: Precision, is_zero: bool) -> Tensor:
    try:
        if is_zero:
            return torch.zeros(shape, dtype=precision.cache, device=precision.device)
        # Slots are written before they are read, and a CPU takes their pages only then.
        return torch.empty(shape, dtype=precision.cache, device=precision.device)
    except RuntimeError as error:
        raise OutOfMemoryError(
            f"No memory for a KV cache of {shape[3]} tokens.",
            "Close other programs, start a new chat, or choose a smaller model.",
            num_tokens=shape[3],
        ) from error
