"""Layers of 4-bit weights on a card: bitsandbytes' product that unpacks as it multiplies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from medusa_core.models.quant.layout import (
    LinearLayout,
    bias_of,
    with_bias,
)
from medusa_core.models.quant.nf4_sizes import BLOCK
from medusa_core.models.quant.nf4_tensors import read_matrix


class Nf4CudaLinear:
    """4-bit weights where they lie; inputs stay as they are."""

    def __init__(self, shape: tuple[int, int], held: Sequence[Tensor], bias: Tensor | None) -> None:
        """Take a matrix.

        Args:
            shape: Its rows and columns.
            held: Its levels, and the blocks' largest numbers; where those are nested these are the
                largest numbers' own, and they, their levels and their offset come behind.
            bias: [rows], or None.
        """
        import medusa_core.models.quant.bitsandbytes_quietly  # noqa: F401 - registers the kernels

        self._shape = shape
        self._packed, self._largest, *nested = held
        self._nested = tuple(nested)
        self._bias = bias
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

    def layout(self) -> LinearLayout:
        held = (self._packed, self._largest, *self._nested)
        again = partial(_again, self._shape, len(held))
        return LinearLayout(f"nf4 {self._shape}", with_bias(held, self._bias), again)


def nf4_cuda_linear(tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None) -> Nf4CudaLinear:
    """A layer of a matrix as `quantize` gives it.

    Args:
        tensors: By name, on the card.
        rows: Rows of the matrix.
        bias: [rows], or None.

    Raises:
        CheckpointError: The tensors don't fit each other.
    """
    shape = (rows, tensors["weight"].numel() * 2 // rows)
    matrix = read_matrix(tensors, *shape)
    packed, nested = matrix.packed.view(-1, 1), matrix.nested
    if nested is None:
        return Nf4CudaLinear(shape, (packed, matrix.largest), bias)
    # The blocks' largest numbers are bytes, and the float32 ones are those of theirs.
    held = (packed, nested.largest, matrix.largest, nested.levels, nested.offset)
    return Nf4CudaLinear(shape, held, bias)


def _again(shape: tuple[int, int], count: int, tensors: Sequence[Tensor]) -> Nf4CudaLinear:
    return Nf4CudaLinear(shape, tensors[:count], bias_of(tensors, count))
