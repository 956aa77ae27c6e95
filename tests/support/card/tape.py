"""A graph of the fake card: operations with the very tensors that they were recorded with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

Work = Callable[[], Any]


class Tape:
    """Recorded work of a graph; replaying it never queries the host.

    Attributes:
        num_operations: How much was recorded.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[Work, Any]] = []

    @property
    def num_operations(self) -> int:
        return len(self._pieces)

    def add(self, work: Work, result: Any) -> None:
        """Record an operation and its output."""
        self._pieces.append((work, result))

    def play(self) -> None:
        """Do all of it again: results go where they went when it was recorded."""
        for work, result in self._pieces:
            pairs = zip(tree_leaves(result), tree_leaves(work()), strict=True)
            for kept, made in pairs:
                if isinstance(kept, Tensor) and kept.data_ptr() != made.data_ptr():
                    kept.copy_(made)
