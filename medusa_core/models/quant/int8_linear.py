"""Layers of 8-bit weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.models.quant.layout import (
    LinearLayout,
    bias_of,
    with_bias,
)

_FLOAT16_RANGE = (-65280.0, 65280.0)  # the last numbers that bfloat16 has, too


class Int8Linear:
    """8-bit weights times inputs as they are: a CPU's kernel, the same for every number of rows."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None) -> None:
        """Take weights and their scales. [out, in] int8, [out] bfloat16"""
        self._weight = weight.contiguous()
        self._scale = scale
        self._bias = bias
        self._run = torch.ops.aten._weight_int8pack_mm.default
        self.nbytes = weight.nbytes + scale.nbytes + (0 if bias is None else bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = self._run(x.contiguous(), self._weight, self._scale)
        return product if self._bias is None else product.add_(self._bias)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        return LinearLayout("int8", with_bias((self._weight, self._scale), self._bias), _again)


class Int8RowsLinear:
    """8-bit weights times inputs rounded to 8 bits, each row by its own largest number."""

    def __init__(self, weight: Tensor, largest: Tensor, bias: Tensor | None) -> None:
        """Take weights and each row's largest number. [out, in] int8, [out] float32"""
        import medusa_core.models.quant.bitsandbytes_quietly  # noqa: F401 - registers the kernels

        self._weight = weight.contiguous()
        self._largest = largest
        self._bias = bias
        kernels = torch.ops.bitsandbytes
        self._round = kernels.int8_vectorwise_quant.default
        self._run = kernels.int8_scaled_mm.default
        self.nbytes = weight.nbytes + self._largest.nbytes + (0 if bias is None else bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        # The kernel rounds float16 alone; others are cast on the way, which keeps all they can
        # show up to 65,280 and takes one more pass over the inputs.
        halves = x if x.dtype == torch.float16 else x.clamp(*_FLOAT16_RANGE).half()
        rounded, largest, _ = self._round(halves.contiguous(), 0.0)
        product: Tensor = self._run(
            rounded, self._weight, largest, self._largest, self._bias, x.dtype
        )
        return product

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        tensors = with_bias((self._weight, self._largest), self._bias)
        return LinearLayout("int8 rows", tensors, _rows_again)


def int8_rows_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> Int8RowsLinear:
    """A layer of weights and their scales. [out, in] int8, [out] any float dtype"""
    # The kernels divide by 127 themselves: they expect each row's largest number.
    return Int8RowsLinear(weight, scale.float() * 127, bias)


def _again(tensors: Sequence[Tensor]) -> Int8Linear:
    return Int8Linear(tensors[0], tensors[1], bias_of(tensors, 2))


def _rows_again(tensors: Sequence[Tensor]) -> Int8RowsLinear:
    return Int8RowsLinear(tensors[0], tensors[1], bias_of(tensors, 2))
