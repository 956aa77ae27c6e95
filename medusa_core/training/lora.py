"""A LoRA in training: two thin matrices for every linear layer of a target's blocks.

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
from medusa_core.training.frozen import Added


@dataclass(frozen=True, slots=True)
class LoraForm:
    """What a LoRA is made of.

    Attributes:
        rank: Of its matrices.
        alpha: What they are added with is alpha / rank.
    """

    rank: int = 32
    alpha: float = 16.0

    @property
    def scale(self) -> float:
        """What their product is multiplied with."""
        return self.alpha / self.rank


class LoraModule(nn.Module):
    """The matrices of all layers; what is added begins as nothing.

    Attributes:
        form: What they are made of.
    """

    def __init__(self, form: LoraForm, config: ModelConfig, dtype: torch.dtype, seed: int) -> None:
        """Make a LoRA that has yet to learn anything.

        Args:
            form: What it is made of.
            config: Sizes of the target.
            dtype: Of its numbers.
            seed: Of what A begins with.
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
        """What is added to a part; None to one that isn't in the blocks.

        Args:
            part: Which.
            dtype: What products are made in.
        """
        if _key(part.pieces[0]) not in self._down:
            return None
        names = list(dict.fromkeys(map(_key, part.pieces)))

        def added(x: Tensor) -> Tensor:
            down = torch.cat([self._down[name] for name in names])
            inner = F.linear(x.to(dtype), down.to(dtype)) * self.form.scale
            of = dict(zip(names, torch.split(inner, self.form.rank, dim=-1), strict=True))
            pieces = [F.linear(of[_key(p)], self._rows(p).to(dtype)) for p in part.pieces]
            return torch.cat(pieces, dim=-1).to(x.dtype)

        return added

    def _rows(self, piece: TensorRows) -> Tensor:
        """B of a piece, in the order of the running target's rows."""
        rows = piece.take(self._up[_key(piece)])
        return piece.interleaved(rows, self._heads)

    def matrices(self) -> Sequence[tuple[str, Tensor, Tensor]]:
        """Of every layer its name, A and B, as they are published."""
        return [
            (key.replace("/", "."), a.detach(), self._up[key].detach())
            for key, a in self._down.items()
        ]


def _key(piece: TensorRows) -> str:
    """A name that torch's modules take."""
    return piece.name.replace(".", "/")
