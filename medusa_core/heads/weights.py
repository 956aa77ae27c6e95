"""Medusa heads as plain tensors: the one form that every published format is read into."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """Weights of one head.

    Attributes:
        layers: Per residual layer the weight [hidden, hidden] and the bias [hidden] or None.
        projection: [columns, hidden], or None to share the target's.
    """

    layers: tuple[tuple[Tensor, Tensor | None], ...]
    projection: Tensor | None


@dataclass(frozen=True, slots=True)
class HeadSet:
    """All heads of a folder, all of one build.

    Attributes:
        heads: Head 1, 2, ...
        token_map: The token id of every column of a reduced vocabulary, or None where columns are
            token ids. [columns], int64
    """

    heads: tuple[HeadWeights, ...]
    token_map: Tensor | None = None

    @property
    def num_layers(self) -> int:
        """Residual layers of each head."""
        return len(self.heads[0].layers)

    @property
    def num_columns(self) -> int | None:
        """Rows of the heads' own projections; None where they share the target's."""
        projection = self.heads[0].projection
        return None if projection is None else len(projection)

    @property
    def hidden_size(self) -> int | None:
        """Width of the heads; None for heads of which nothing is their own."""
        head = self.heads[0]
        own = head.projection if head.projection is not None else None
        tensor = head.layers[0][0] if head.layers else own
        return None if tensor is None else tensor.shape[-1]
