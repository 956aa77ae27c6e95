"""Checkpoint tensors that a linear layer reads: fusions, slices and rotation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class TensorRows:
    """Rows of a linear layer that come from one tensor of a checkpoint.

    Attributes:
        name: The tensor's name, without `.weight`.
        rows: Number of rows.
        rotates: They belong to heads with rotary embedding, stored as halves.
        first: First of the tensor's rows.
        total: Rows of the whole tensor; 0 if all are taken.
        head_dim: Width of heads all of which rotate; 0 for the model's `head_rows`.
        stride: Distance between runs of rows; 0 for a single run.
    """

    name: str
    rows: int
    rotates: bool = False
    first: int = 0
    total: int = 0
    head_dim: int = 0
    stride: int = 0

    @property
    def tensor_rows(self) -> int:
        """Rows of the whole tensor."""
        return self.total or self.rows


@dataclass(frozen=True, slots=True)
class LinearSpec:
    """A linear layer; projections of the same input are one.

    Attributes:
        name: Its name in this engine, such as `layers.0.qkv`.
        pieces: Tensors of a checkpoint, concatenated by rows.
        columns: Columns of all of them.
        has_bias: Each piece has a bias.
        stays_dense: It isn't quantized in any weight format.
        grouped_heads: (key heads, heads) if its columns are strided by key head: the first head of
            every group, then the second, …; None for consecutive groups.
    """

    name: str
    pieces: tuple[TensorRows, ...]
    columns: int
    has_bias: bool = False
    stays_dense: bool = False
    grouped_heads: tuple[int, int] | None = None

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def is_one_tensor(self) -> bool:
        """Whether it is a whole tensor of a checkpoint, its rows in their order."""
        return len(self.pieces) == 1 and not self.pieces[0].rotates and not self.pieces[0].total

    def fused_in(self, name: str) -> LinearSpec:
        """Return the layer whose pieces are consecutive rows of one tensor."""
        pieces, first = [], 0
        for piece in self.pieces:
            pieces.append(replace(piece, name=name, first=first, total=self.rows))
            first += piece.rows
        return replace(self, pieces=tuple(pieces))

    @property
    def stored_interleaved(self) -> LinearSpec:
        """The layer whose heads are stored as rotated pairs already."""
        return replace(self, pieces=tuple(replace(piece, rotates=False) for piece in self.pieces))

    def renamed(self, rename: Callable[[str], str]) -> LinearSpec:
        """Return the layer with other names of itself and its tensors."""
        pieces = tuple(replace(piece, name=rename(piece.name)) for piece in self.pieces)
        return replace(self, name=rename(self.name), pieces=pieces)
