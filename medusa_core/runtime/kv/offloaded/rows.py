"""A session's rows of the layers below the device, wherever they lie.

A pass visits layer by layer: for so long all rows of that layer are shown in a view, where it
writes new ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from medusa_core.errors import EngineError


class Undecided(NamedTuple):
    """Rows of some layers among which a step chooses.

    Attributes:
        parts: Where they lie. [layers, 2, kv heads, slots, width] of each shape of rows.
        first: The slot of the first reserved row.
    """

    parts: Sequence[Tensor]
    first: int


class OffloadedRows(ABC):
    """What a cache asks of them. Lengths are told by it."""

    @abstractmethod
    def holding(self, layer: int) -> HomeRows:
        """What holds the rows of a layer, as there may be several homes."""

    @abstractmethod
    def release(self) -> None:
        """Give the room back."""

    @abstractmethod
    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        """A pass begins.

        Args:
            length: Committed rows.
            num_rows: Rows that it writes behind them.
            decided: All of them will be committed.

        Raises:
            EngineError: There is no room for them.
            TierError: What a failed pass or a truncation has left can't be read.
        """

    def view(self, layer: int) -> Tensor:
        """All rows of the layer that is visited. [2, kv heads, slots, width]"""
        return self.holding(layer).shown(layer)

    @abstractmethod
    def undecided(self, length: int) -> Sequence[Undecided]:
        """Where the reserved rows are, some of which are brought to the front.

        Args:
            length: Committed rows.
        """

    @abstractmethod
    def commit(self, length: int, num_rows: int) -> None:
        """Keep the first of the reserved rows.

        Args:
            length: Rows that were committed before.
            num_rows: Rows that are kept.

        Raises:
            TierError: They can't be written: nothing is committed.
        """

    @abstractmethod
    def truncate(self, length: int) -> None:
        """Forget all rows from `length` on."""

    @abstractmethod
    def fill(self, length: int) -> None:
        """Hold `length` rows of nothing, which lie where others would.

        Raises:
            TierError: They can't be written.
        """

    @abstractmethod
    def rows(self, layer: int, first: int, length: int) -> Tensor:
        """A copy of committed rows between two passes, in the computer's memory.

        Args:
            layer: Of which layer.
            first: The first one, a multiple of 16.
            length: Committed rows.

        Returns:
            [2, kv heads, slots, width]: whole blocks.

        Raises:
            TierError: They can't be read.
        """


class HomeRows(OffloadedRows):
    """The rows in one home, which is visited layer by layer."""

    def __init__(self) -> None:
        self._shown: tuple[int, Tensor] | None = None

    def holding(self, layer: int) -> HomeRows:
        return self

    def show(self, layer: int, view: Tensor) -> None:
        """A pass comes to a layer, whose rows it finds in a view. [2, kv heads, slots, width]"""
        self._shown = layer, view

    def shown(self, layer: int) -> Tensor:
        """The view of the layer that is visited."""
        if self._shown is None or self._shown[0] != layer:
            raise EngineError(f"The cached rows of layer {layer} aren't here now.")
        return self._shown[1]

    @abstractmethod
    def leave(self) -> None:
        """The pass leaves the layer: its new rows are kept.

        Raises:
            TierError: They can't be written.
        """

    @abstractmethod
    def committed_part(self, view: Tensor) -> Tensor:
        """What holds the committed rows of a view, as one piece. [numbers]

        Args:
            view: Of a visit, or one that lies as it does elsewhere.
        """

    @abstractmethod
    def fresh_part(self, view: Tensor) -> Tensor:
        """What holds the reserved rows of a view, as `committed_part` has it. [any]"""
