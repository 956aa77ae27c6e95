"""Layers of nf4 weights on a GPU: bitsandbytes' product that dequantizes on the fly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from medusa_core.models.quant.block_sizes import NF4_BLOCK
from medusa_core.models.quant.layout import TensorLinear
from medusa_core.models.quant.nf4_tensors import read_matrix


class Nf4CudaLinear(TensorLinear):
    """nf4 weights; inputs aren't quantized."""

    def __init__(self, shape: tuple[int, int], is_nested: bool, *tensors: Tensor | None) -> None:
        """Make a layer.

        Args:
            shape: Rows and columns of the matrix.
            is_nested: Whether the absmax values are quantized, too.
            tensors: Packed weights and absmax; with double quantization packed weights, absmax of
                the absmax values, these, their levels and their offset; then the bias or None.
        """
        import medusa_core.models.quant.quiet_bitsandbytes  # noqa: F401 - registers the kernels

        rebuild = partial(Nf4CudaLinear, shape, is_nested)
        super().__init__(f"nf4 {shape}", rebuild, *tensors)
        count = 5 if is_nested else 2
        self._shape = shape
        self._packed, self._absmax, *self._nested = tensors[:count]
        self._bias = tensors[count] if len(tensors) > count else None
        self._run = torch.ops.bitsandbytes.gemm_4bit.default

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = self._run(
            x, self._packed, self._shape, self._absmax, NF4_BLOCK, "nf4", self._bias, *self._nested
        )
        return product


def nf4_cuda_linear(tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None) -> Nf4CudaLinear:
    """Make a layer of a matrix that `nf4_tensors.quantize` quantized.

    Args:
        tensors: By name, on the GPU.
        rows: Rows of the matrix.
        bias: [rows], or None.

    Raises:
        CheckpointError: The tensors don't fit each other.
    """
    shape = (rows, tensors["weight"].numel() * 2 // rows)
    matrix = read_matrix(tensors, *shape)
    packed, nested = matrix.packed.view(-1, 1), matrix.nested
    if nested is None:
        return Nf4CudaLinear(shape, False, packed, matrix.absmax, bias)
    held = (packed, nested.absmax, matrix.absmax, nested.levels, nested.offset)
    return Nf4CudaLinear(shape, True, *held, bias)
