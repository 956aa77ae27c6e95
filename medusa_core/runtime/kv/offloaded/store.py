"""Storage below the device for the KV rows of some layers, for a number of sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.offloaded.offloaded_kv import OffloadedKv


class KvStore(ABC):
    """KV rows of some layers of a target; a session has one slot.

    Attributes:
        layers: Indices of the layers, ascending.
        num_sessions: Number of slots.
        num_rows: Rows of a slot.
    """

    def __init__(
        self,
        config: ModelConfig,
        layers: tuple[int, ...],
        num_sessions: int,
        num_rows: int,
        cache_format: str = "",
    ) -> None:
        """Describe the store; `allocate` takes the room.

        Args:
            config: Sizes of the target.
            layers: Indices of layers that have KV rows of their own.
            num_sessions: Most sessions at once.
            num_rows: Most rows of a session, a multiple of 16.
            cache_format: `q8_0` or `q4`, or empty for rows that aren't quantized.
        """
        self.layers = tuple(sorted(layers))
        self.num_sessions = num_sessions
        self.num_rows = num_rows
        self._config = config
        self._cache_format = cache_format
        self._free = list(reversed(range(num_sessions)))
        self._wait_for_copies: Callable[[], None] | None = None

    @abstractmethod
    def allocate(self, dtype: torch.dtype, device: torch.device) -> None:
        """Take the room at the first call; the cache pool or the first cache makes it.

        Args:
            dtype: Dtype of stored keys and values.
            device: Device of the caches.

        Raises:
            TierError: The disk has no room, or can't be written.
            OutOfMemoryError: A memory has no room.
        """

    @property
    @abstractmethod
    def device_bytes(self) -> int:
        """Bytes of device memory in use, without the prefetcher's buffers."""

    @property
    @abstractmethod
    def host_bytes(self) -> int:
        """Bytes of host memory in use, unless it is the device's own memory."""

    @property
    @abstractmethod
    def step_rows(self) -> int:
        """Most speculative rows of one sequence in a step."""

    @abstractmethod
    def row_bytes(self, layer: int) -> int:
        """Bytes of a row in a layer; only after `allocate`."""

    @abstractmethod
    def new_session(self) -> OffloadedKv:
        """Return the empty rows of another session.

        Raises:
            OutOfMemoryError: All slots are in use.
        """

    def acquire_slot(self) -> int:
        """Return a free slot.

        Raises:
            OutOfMemoryError: All slots are in use.
        """
        try:
            return self._free.pop()
        except IndexError:
            raise no_free_slot(self.num_sessions) from None

    def release_slot(self, slot: int) -> None:
        """Mark a slot as free."""
        self._free.append(slot)

    def defer_copies(self, wait: Callable[[], None]) -> None:
        """Note that rows are being copied here from a GPU; `wait` returns when all are there."""
        self._wait_for_copies = wait

    def wait_for_copies(self) -> None:
        """Wait for copies from a GPU."""
        if self._wait_for_copies is not None:
            self._wait_for_copies()
            self._wait_for_copies = None


def no_free_slot(num_sessions: int) -> OutOfMemoryError:
    """Return the error for a session more than a store has slots."""
    return OutOfMemoryError(
        tr("Cached rows have room for {0} conversations, and all are in use.", num_sessions),
        "Wait for the answers that are being written, or load the model for more of them.",
        num_sessions=num_sessions,
    )
