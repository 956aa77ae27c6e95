"""Layers of 4-bit weights on a card: bitsandbytes' product that unpacks as it multiplies."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from medusa_core.quant.nf4 import BLOCK
from medusa_core.quant.nf4_linear import read_state


class Nf4CardLinear:
    """4-bit weights where they lie; inputs stay as they are."""

    def __init__(self, tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None) -> None:
        """Take a matrix as `quantize` gives it.

        Args:
            tensors: By name, on the card.
            rows: Rows of the matrix.
            bias: [rows], or None.
        """
        statistics = {name: tensor for name, tensor in tensors.items() if name != "weight"}
        packed = tensors["weight"]
        self._shape = (rows, packed.numel() * 2 // rows)
        state = read_state(statistics, *self._shape, packed.device)
        self._packed = packed.view(-1, 1)
        self._bias = bias
        # Nested: the blocks' largest numbers are bytes, and the float32 ones are those of theirs.
        nested = (state.absmax, state.state2.code, state.offset) if state.nested else ()
        self._largest = state.state2.absmax if nested else state.absmax
        self._nested: tuple[Tensor, ...] = nested
        self._run = torch.ops.bitsandbytes.gemm_4bit.default

    @property
    def nbytes(self) -> int:
        bias = () if self._bias is None else (self._bias,)
        held = (self._packed, self._largest, *self._nested, *bias)
        return sum(int(tensor.nbytes) for tensor in held)

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = self._run(
            x, self._packed, self._shape, self._largest, BLOCK, "nf4", self._bias, *self._nested
        )
        return product

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)
