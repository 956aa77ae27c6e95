"""Linear layers of block-quantized weights: compiled, or dequantized at each call."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.block_types import BlockType, block_type
from medusa_core.models.quant.card_linear import card_linear
from medusa_core.models.quant.layout import QuantLinear, TensorLinear
from medusa_core.models.quant.native_linear import native_block_linear

_CHUNK_WEIGHTS = 1 << 22  # weights that are dequantized at a time


class BlockLinear(TensorLinear):
    """Block-quantized weights in torch, for computers without the compiled step."""

    def __init__(self, kind: BlockType, stored: Tensor, bias: Tensor | None = None) -> None:
        """Make a layer. uint8 [out, bytes of a row], [out]"""
        stored = stored.contiguous()
        super().__init__(f"blocks {kind.name}", partial(BlockLinear, kind), stored, bias)
        self._kind, self._stored, self._bias = kind, stored, bias
        self._chunk_rows = max(1, _CHUNK_WEIGHTS // kind.columns(stored))

    def __call__(self, x: Tensor) -> Tensor:
        chunks = [
            F.linear(x, self._kind.dequantize(rows).to(x.dtype))
            for rows in torch.split(self._stored, self._chunk_rows)
        ]
        y = torch.cat(chunks, dim=-1)
        return y if self._bias is None else y.add_(self._bias)


def make_block_linear(
    name: str, stored: Tensor, bias: Tensor | None, compute: torch.dtype
) -> QuantLinear:
    """Make the fastest layer of block-quantized weights.

    Args:
        name: Name of the block type.
        stored: Blocks in GGUF's layout. uint8 [out, bytes of a row]
        bias: [out], or None.
        compute: Compute dtype of the model.
    """
    kind = block_type(name)
    for make in (native_block_linear, card_linear):
        made = make(kind, stored, bias)
        if made is not None:
            return made
    return BlockLinear(kind, stored, None if bias is None else bias.to(compute))
