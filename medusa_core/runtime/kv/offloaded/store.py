"""What is home to the cached rows of some layers, for a number of sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.runtime.kv.offloaded.rows import OffloadedRows


class RowStore(ABC):
    """Home of the rows of some layers; one per target.

    Attributes:
        layers: Whose rows lie here, ascending.
        num_sessions: Sessions that have a slot.
        num_rows: Most rows of a session.
    """

    def __init__(self, layers: tuple[int, ...], num_sessions: int, num_rows: int) -> None:
        """Know what will lie here; `lay_out` takes the room.

        Args:
            layers: Whose rows lie here; each has rows of its own.
            num_sessions: Sessions at once.
            num_rows: Most rows of a session, a multiple of 16.
        """
        self.layers = tuple(sorted(layers))
        self.num_sessions = num_sessions
        self.num_rows = num_rows
        self._free = list(reversed(range(num_sessions)))
        self._arrive: Callable[[], None] | None = None

    @abstractmethod
    def lay_out(self, dtype: torch.dtype, device: torch.device) -> None:
        """Take the room, once: the pool of the caches asks for it, or the first cache.

        Args:
            dtype: Of keys and values as they are kept.
            device: Where they are computed with.

        Raises:
            TierError: The disk has no room for them, or can't be written.
            OutOfMemoryError: A memory has no room for them.
        """

    @property
    @abstractmethod
    def device_bytes(self) -> int:
        """Bytes of the device's memory that it takes beside what brings rows."""

    @property
    @abstractmethod
    def host_bytes(self) -> int:
        """Bytes of the computer's memory that it takes, where the device has its own."""

    @property
    @abstractmethod
    def step_rows(self) -> int:
        """Most rows of a step of one sequence that isn't decided."""

    @abstractmethod
    def row_bytes(self, layer: int) -> int:
        """Bytes of a row of a layer, once it is laid out."""

    @abstractmethod
    def new_rows(self) -> OffloadedRows:
        """The rows of another session.

        Raises:
            OutOfMemoryError: All slots are taken.
        """

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

    def expect(self, arrive: Callable[[], None]) -> None:
        """Rows are on their way from a card; `arrive` waits for all of them."""
        self._arrive = arrive

    def settle(self) -> None:
        """Wait until they are here."""
        if self._arrive is not None:
            self._arrive()
            self._arrive = None


def lacking_slots(num_sessions: int) -> OutOfMemoryError:
    """All sessions whose rows have room below the device are in use."""
    return OutOfMemoryError(
        f"Cached rows have room for {num_sessions} conversations, and all are in use.",
        "Wait for the answers that are being written, or load the model for more of them.",
        num_sessions=num_sessions,
    )
