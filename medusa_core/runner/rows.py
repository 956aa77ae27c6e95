"""The rows of one forward pass and the masks that tell them what to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.tree.shape import TreeShape


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Rows whose places are known before their tokens.

    Attributes:
        offsets: Position of each row behind the committed ones. [n], int64
        mask: Additive attention mask, or None for a single row, which sees everything.
            [group · n, room + n]: zeros for the committed prefix, then the rows among themselves;
            the last `length + n` columns serve a cache of that length.
        max_offset: The largest offset.
    """

    offsets: Tensor
    mask: Tensor | None
    max_offset: int

    @property
    def num_rows(self) -> int:
        """Rows of the forward pass."""
        return len(self.offsets)

    def mask_for(self, length: int) -> Tensor | None:
        """The mask behind `length` committed rows: a view, nothing is copied."""
        if self.mask is None:
            return None
        return self.mask[:, self.mask.shape[1] - self.num_rows - length :]


_Key = TypeVar("_Key")

_LEAST_KEPT, _MOST_KEPT = 16, 256
_MOST_BYTES = 16 << 20  # of masks of trees of 16 rows


class LayoutCache:
    """Builds layouts once per tree and keeps the latest ones."""

    def __init__(self, group: int, precision: Precision) -> None:
        self._group = group
        self._precision = precision
        self._trees: dict[TreeShape, RowLayout] = {}
        self._chains: dict[int, RowLayout] = {}
        self._room = 0

    def tree(self, shape: TreeShape, room: int) -> RowLayout:
        """Layout of a token tree behind at most `room` committed rows."""
        self._make_room(room)
        if shape not in self._trees:
            self._drop_oldest(self._trees)
            self._trees[shape] = self._build(shape.depths, torch.tensor(shape.mask))
        return self._trees[shape]

    def chain(self, num_rows: int, room: int) -> RowLayout:
        """Layout of consecutive tokens, each seeing the ones before it."""
        self._make_room(room)
        if num_rows not in self._chains:
            self._drop_oldest(self._chains)
            causal = torch.ones(num_rows, num_rows, dtype=torch.bool).tril_()
            self._chains[num_rows] = self._build(range(num_rows), causal)
        return self._chains[num_rows]

    def _build(self, offsets: Sequence[int], sees: Tensor) -> RowLayout:
        precision = self._precision
        positions = torch.tensor(offsets, dtype=torch.int64, device=precision.device)
        if len(positions) == 1:
            return RowLayout(positions, None, 0)
        mask = torch.zeros(len(sees), self._room + len(sees), dtype=precision.cache)
        mask[:, self._room :].masked_fill_(~sees, float("-inf"))
        mask = mask.repeat(self._group, 1).to(precision.device)
        return RowLayout(positions, mask, max(offsets))

    def _make_room(self, room: int) -> None:
        if room > self._room:
            self._room = room
            self._trees.clear()
            self._chains.clear()

    def _drop_oldest(self, kept: dict[_Key, RowLayout]) -> None:
        # Drafters that grow their trees need many shapes; large masks are kept as few.
        row_bytes = self._group * (self._room + 1) * self._precision.cache.itemsize
        most = max(_LEAST_KEPT, min(_MOST_KEPT, _MOST_BYTES // (16 * row_bytes)))
        while len(kept) >= most:
            kept.pop(next(iter(kept)))
