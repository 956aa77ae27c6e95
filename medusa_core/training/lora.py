"""A LoRA in training, for every linear layer of a target's blocks.

Source: Hu et al. 2021, "LoRA", section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.config import HeadRows, ModelConfig
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.row_order import rows_of
from medusa_core.training.frozen import Added


@dataclass(frozen=True, slots=True)
class LoraSpec:
    """Rank and scale of a LoRA.

    Attributes:
        rank: Rank of the matrices.
        alpha: The product is scaled by alpha / rank.
    """

    rank: int = 32
    alpha: float = 16.0

    @property
    def scale(self) -> float:
        """Factor of the product."""
        return self.alpha / self.rank


class LoraModule(nn.Module):
    """Matrices A and B of all layers; B is initially zero.

    Attributes:
        form: Rank and scale.
    """

    def __init__(self, form: LoraSpec, config: ModelConfig, dtype: torch.dtype, seed: int) -> None:
        """Initialize an untrained LoRA.

        Args:
            form: Rank and scale.
            config: Sizes of the target.
            dtype: Dtype of the matrices.
            seed: Seed of A.
        """
        super().__init__()
        self.form = form
        self._heads: HeadRows = config.head_rows
        self._down, self._up = nn.ParameterDict(), nn.ParameterDict()
        generator = torch.Generator().manual_seed(seed)
        for part in linear_parts(config):
            for piece in part.pieces:
                key = _key(piece)
                if key not in self._down:
                    bound = 1 / math.sqrt(part.columns)
                    a = torch.empty(form.rank, part.columns, dtype=dtype)
                    self._down[key] = nn.Parameter(a.uniform_(-bound, bound, generator=generator))
                    self._up[key] = nn.Parameter(
                        torch.zeros(piece.tensor_rows, form.rank, dtype=dtype)
                    )

    def added_to(self, part: LinearSpec, dtype: torch.dtype) -> Added | None:
        """Return the adapter of a part; None for parts outside the blocks.

        Args:
            dtype: Dtype of products.
        """
        if _key(part.pieces[0]) not in self._down:
            return None
        names = list(dict.fromkeys(map(_key, part.pieces)))

        def added(x: Tensor) -> Tensor:
            """Return what the adapter adds to a layer's output."""
            down = torch.cat([self._down[name] for name in names])
            inner = F.linear(x.to(dtype), down.to(dtype)) * self.form.scale
            of = dict(zip(names, torch.split(inner, self.form.rank, dim=-1), strict=True))
            pieces = [F.linear(of[_key(p)], self._rows(p).to(dtype)) for p in part.pieces]
            return torch.cat(pieces, dim=-1).to(x.dtype)

        return added

    def _rows(self, piece: TensorRows) -> Tensor:
        """Return B of a piece, with its rows in the order of the loaded target."""
        return rows_of(piece, self._up[_key(piece)], self._heads)

    def matrices(self) -> Sequence[tuple[str, Tensor, Tensor]]:
        """Return name, A and B of each layer in the published layout."""
        return [
            (key.replace("/", "."), a.detach(), self._up[key].detach())
            for key, a in self._down.items()
        ]


def _key(piece: TensorRows) -> str:
    """Return a name that is valid in torch's modules."""
    return piece.name.replace(".", "/")
