"""What is home to the cached rows of some layers, for a number of sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.size import row_groups, tail_slots


class RowSizes(NamedTuple):
    """How a layer's rows lie in a cache: [2, kv heads, slots, width].

    Attributes:
        heads: Heads of keys and of values together.
        width: Numbers of a head in a slot.
    """

    heads: int
    width: int


class RowStore(ABC):
    """Home of the rows of some layers; one per target.

    Attributes:
        layers: Whose rows lie here, ascending.
        num_sessions: Sessions that have a slot.
        num_rows: Most rows of a session.
        tree_rows: Most rows of a step that isn't decided.
        tail_rows: Slots of a tail: rows behind the last whole block, and those of a step.
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
        self.tree_rows = tree_rows
        self.tail_rows = tail_slots(tree_rows)
        self._cache_format = cache_format
        # Of every shape its layers that lie here, in the order of a cache's parts.
        self._groups = {
            shape: [layer for layer in layers_of if layer in self.layers]
            for shape, layers_of in row_groups(config).items()
        }
        self._free = list(range(num_sessions))

    @abstractmethod
    def lay_out(self, dtype: torch.dtype, device: torch.device) -> None:
        """Take the room, once: the pool of the caches asks for it, or the first cache.

        Args:
            dtype: Of keys and values as they are kept.
            device: Where they are computed with.

        Raises:
            TierError: The disk has no room for them, or can't be written.
            OutOfMemoryError: The device has no room for the tails.
        """

    @property
    @abstractmethod
    def device_bytes(self) -> int:
        """Bytes of the device's memory that it takes beside the ring, such as for tails."""

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
            raise OutOfMemoryError(
                f"The cached rows below the device have room for {self.num_sessions} "
                "conversations, and all are in use.",
                "Wait for the answers that are being written, or load the model for more.",
                num_sessions=self.num_sessions,
            ) from None

    def free_slot(self, slot: int) -> None:
        """Take a slot back."""
        self._free.append(slot)
