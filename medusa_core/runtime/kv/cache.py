"""What a cache of keys and values is, with room for a tree behind what is committed.

One tensor holds all layers, so that keeping an accepted path is one piece of work for the whole
model. Slots `length … length + n` take the rows of the forward pass under way; `commit` keeps some.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.errors import EngineError, OutOfMemoryError
from medusa_core.models.config import ModelConfig


class KvCache(ABC):
    """Keys and values of one session.

    Attributes:
        length: Committed rows.
        capacity: Slots in all.
    """

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype,
        device: torch.device,
        capacity: int,
        num_spare: int = 0,
        memory: Tensor | None = None,
        width: int = 0,
    ) -> None:
        """Take the memory.

        Args:
            config: Sizes of the target.
            dtype: Of keys and values.
            device: Where they lie.
            capacity: Slots.
            num_spare: Slots behind these, for padding rows. All slots then begin as zeros, as
                steps of fixed width read beyond what is written.
            memory: Where the cache lies, for `capacity` slots with the spare ones among them;
                None takes memory of its own.
            width: Numbers of a head in a slot; 0 for the heads' own.
        """
        self._num_spare = num_spare
        slots = capacity + num_spare
        if memory is not None:
            capacity, slots = capacity - num_spare, capacity
        shape = (config.num_layers, 2, config.num_kv_heads, slots, width or config.head_dim)
        self._data = _allocate(shape, dtype, device) if memory is None else memory.view(shape)
        if num_spare:
            self._data.zero_()
        self.length = 0
        self.capacity = capacity

    @property
    def nbytes(self) -> int:
        """Bytes that the cache takes."""
        return self._data.nbytes

    def stretch(self, memory: Tensor) -> None:
        """Go on in a longer piece of memory that begins where the old one does.

        Args:
            memory: For whole slots, the spare ones among them.
        """
        old = self._data
        shape = (*old.shape[:3], memory.numel() // (old.numel() // old.shape[3]), old.shape[4])
        new = memory.view(shape)
        before, after = (self._first_rows(data, self.length) for data in (old, new))
        # From the last layer on: each lies behind what is left of those before it.
        for layer in reversed(range(len(new))):
            kept = before[layer].clone()
            if self._num_spare:
                new[layer].zero_()
            after[layer].copy_(kept)
        self._data = new
        self.capacity = shape[3] - self._num_spare

    def take_over(self, other: KvCache) -> None:
        """Hold what another cache of this kind holds."""
        self.length = other.length
        rows = self._first_rows(self._data, self.length)
        rows.copy_(other._first_rows(other._data, self.length))

    def reserve(self, num_rows: int) -> None:
        """Open `num_rows` slots behind the committed rows for one forward pass."""
        if self.length + num_rows > self.capacity:
            raise EngineError(
                f"{num_rows} rows don't fit behind {self.length} of {self.capacity} slots."
            )

    def commit(self, slots: Sequence[int]) -> None:
        """Keep some of the reserved rows, in order, and forget the rest.

        Args:
            slots: Offsets among the reserved rows, ascending.
        """
        self.gather(slots)
        self.length += len(slots)

    def gather(self, slots: Sequence[int]) -> None:
        """Bring some of the reserved rows to the front, uncommitted; the others are lost.

        Args:
            slots: As in `commit`.
        """
        if slots and slots[-1] != len(slots) - 1:  # else they lie there already
            self._move(slots)

    def truncate(self, length: int) -> None:
        """Forget all rows from `length` on."""
        self.length = min(self.length, length)

    def fill(self, length: int) -> None:
        """Hold `length` rows of nothing: for measurements."""
        self._first_rows(self._data, length).zero_()
        self.length = length

    @abstractmethod
    def committed(self) -> Tensor:
        """A copy of what is committed. [layers, 2, kv heads, length, head_dim]"""

    @abstractmethod
    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        """A view of a cache's tensor with its first `length` rows, and maybe a few more."""

    @abstractmethod
    def _move(self, slots: Sequence[int]) -> None:
        """Bring some of the reserved rows to the front."""


def _allocate(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    try:
        # Slots are written before they are read, and a CPU takes their pages only then.
        return torch.empty(shape, dtype=dtype, device=device)
    except RuntimeError as error:
        raise OutOfMemoryError(
            f"No memory for a KV cache of {shape[3]} tokens.",
            "Close other programs, start a new chat, or choose a smaller model.",
            num_tokens=shape[3],
        ) from error
