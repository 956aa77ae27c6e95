"""One session's KV rows in layers that are offloaded, wherever they are stored.

A pass works layer by layer: a prefetcher binds a view with all rows of a layer, attention reads it
and writes new rows into it, and `write_back` stores these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.i18n import tr


class SpeculativeRows(NamedTuple):
    """Rows of a pass of which a commit keeps some.

    Attributes:
        parts: Rows of the layers, by shape of rows. [layers, 2, kv heads, slots, width] each
        first: Slot of the first reserved row.
    """

    parts: Sequence[Tensor]
    first: int


class OffloadedKv(ABC):
    """KV rows of one session in the layers of a store; the cache keeps their length."""

    def __init__(self) -> None:
        self._bound: tuple[int, Tensor] | None = None

    def bind(self, layer: int, view: Tensor) -> None:
        """Make a layer's rows available to attention. [2, kv heads, slots, width]"""
        self._bound = layer, view

    def view(self, layer: int) -> Tensor:
        """Return the rows of the layer that is computed. [2, kv heads, slots, width]

        Raises:
            EngineError: They weren't prefetched.
        """
        if self._bound is None or self._bound[0] != layer:
            raise EngineError(tr("The cached rows of layer {0} weren't prefetched.", layer))
        return self._bound[1]

    @abstractmethod
    def write_back(self) -> None:
        """Store the new rows of the bound layer, and unbind it.

        Raises:
            TierError: They can't be written.
        """

    @abstractmethod
    def committed_part(self, view: Tensor) -> Tensor:
        """Return a contiguous range of a view that contains its committed rows. [n]

        Args:
            view: A bound view, or a copy with the same layout.
        """

    @abstractmethod
    def reserved_rows(self, view: Tensor) -> Tensor:
        """Return the reserved rows of a view, see `committed_part`. [any shape]"""

    @abstractmethod
    def release(self) -> None:
        """Give the session's slot back to the store."""

    @abstractmethod
    def reserve(self, length: int, num_rows: int, decided: bool) -> None:
        """Begin a pass.

        Args:
            length: Committed rows.
            num_rows: Rows that the pass appends.
            decided: All of them will be committed, such as those of a prompt.

        Raises:
            EngineError: There is no room for them.
            TierError: Rows that a failed pass or a truncation moved can't be read back.
        """

    @abstractmethod
    def speculative(self, length: int) -> Sequence[SpeculativeRows]:
        """Return the reserved rows, so that accepted ones can be moved to the front.

        Args:
            length: Committed rows.
        """

    @abstractmethod
    def commit(self, length: int, num_rows: int) -> None:
        """Keep the first of the reserved rows.

        Args:
            length: Rows that were committed before.
            num_rows: Rows to keep.

        Raises:
            TierError: They can't be written, and nothing is committed.
        """

    @abstractmethod
    def truncate(self, length: int) -> None:
        """Drop all rows from `length` on."""

    @abstractmethod
    def fill(self, length: int) -> None:
        """Commit `length` rows of zeros, for measurements.

        Raises:
            TierError: They can't be written.
        """

    @abstractmethod
    def read(self, layer: int, first: int, length: int) -> Tensor:
        """Copy committed rows to main memory, between two passes.

        Args:
            layer: Index of the layer.
            first: First row, a multiple of 16.
            length: Number of committed rows.

        Returns:
            Whole blocks. [2, kv heads, slots, width]

        Raises:
            TierError: They can't be read.
        """
