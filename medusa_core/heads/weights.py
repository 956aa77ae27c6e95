"""Medusa heads as plain tensors, into which every published format is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


def reads_root(first_layer: Sequence[int]) -> bool:
    """Whether a first layer of this shape reads the root's embedding besides the target's state."""
    return len(first_layer) == 2 and first_layer[1] > first_layer[0]


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """Weights of one head.

    Attributes:
        layers: Weight [hidden, hidden] and bias [hidden] or None of each residual layer. The first
            weight is [hidden, 2 · hidden] if the head reads the root's embedding.
        projection: Output projection [columns, hidden]; None to share one.
    """

    layers: tuple[tuple[Tensor, Tensor | None], ...]
    projection: Tensor | None


@dataclass(frozen=True, slots=True)
class HeadSet:
    """All heads of a folder, which have the same layers.

    Attributes:
        heads: Heads 1, 2, ...
        token_map: Token id of each column of a reduced vocabulary; None if columns are token ids.
            [columns], int64
        projection: Projection shared by all heads, [columns, hidden]; None if each has its own, or
            all share the target's.
    """

    heads: tuple[HeadWeights, ...]
    token_map: Tensor | None = None
    projection: Tensor | None = None

    @property
    def num_layers(self) -> int:
        """Residual layers per head."""
        return len(self.heads[0].layers)

    @property
    def num_columns(self) -> int | None:
        """Rows of the projections; None if heads share the target's."""
        projection = self._any_projection
        return None if projection is None else len(projection)

    @property
    def hidden_size(self) -> int | None:
        """Width of the heads; None if they have no weights."""
        layers, projection = self.heads[0].layers, self._any_projection
        if layers:
            return len(layers[0][0])
        return None if projection is None else projection.shape[-1]

    @property
    def reads_root(self) -> bool:
        """Whether first layers read the root's embedding besides the target's state."""
        layers = self.heads[0].layers
        return bool(layers) and reads_root(layers[0][0].shape)

    @property
    def _any_projection(self) -> Tensor | None:
        """The first projection; None if heads share the target's."""
        own = self.heads[0].projection
        return self.projection if own is None else own
