"""Layers of weights in blocks: compiled, or turned into numbers at each call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.block_types import (
    BlockType,
    block_type,
)
from medusa_core.models.quant.card_linear import card_linear
from medusa_core.models.quant.layout import (
    LinearLayout,
    QuantLinear,
    bias_of,
    with_bias,
)
from medusa_core.models.quant.native_linear import native_block_linear

_TOGETHER = 1 << 22  # weights that are numbers at a time


class BlockLinear:
    """Weights as they are stored, for computers without the compiled step."""

    def __init__(self, of: BlockType, stored: Tensor, bias: Tensor | None) -> None:
        """Take stored rows. uint8 [out, bytes of a row], [out]"""
        self._of = of
        self._stored = stored.contiguous()
        self._bias = bias
        self._rows = max(1, _TOGETHER // of.columns(stored))
        self.nbytes = stored.nbytes + (0 if bias is None else bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        parts = [
            F.linear(x, self._of.dequantize(rows).to(x.dtype))
            for rows in torch.split(self._stored, self._rows)
        ]
        y = torch.cat(parts, dim=-1)
        return y if self._bias is None else y.add_(self._bias)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        again = partial(_again, self._of)
        return LinearLayout(
            f"blocks {self._of.name}", with_bias((self._stored,), self._bias), again
        )


def _again(of: BlockType, tensors: Sequence[Tensor]) -> BlockLinear:
    return BlockLinear(of, tensors[0], bias_of(tensors, 1))


def make_block_linear(
    of: str, stored: Tensor, bias: Tensor | None, compute: torch.dtype
) -> QuantLinear:
    """The fastest layer for weights in blocks.

    Args:
        of: The type of the blocks.
        stored: As files store them; uint8. [out, bytes of a row]
        bias: [out], or None.
        compute: What the other parts compute in.
    """
    for make in (native_block_linear, card_linear):
        made = make(block_type(of), stored, bias)
        if made is not None:
            return made
    return BlockLinear(block_type(of), stored, None if bias is None else bias.to(compute))
