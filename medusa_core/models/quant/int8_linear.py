"""Layers of 8-bit weights."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.models.quant.layout import TensorLinear

_FLOAT16_RANGE = (-65280.0, 65280.0)  # the largest numbers that bfloat16 can represent, too


class Int8Linear(TensorLinear):
    """8-bit weights, unquantized inputs: a CPU kernel whose rows don't depend on each other."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> None:
        """Make a layer. int8 [out, in], bfloat16 [out], [out]"""
        weight = weight.contiguous()
        super().__init__("int8", Int8Linear, weight, scale, bias)
        self._weight, self._scale, self._bias = weight, scale, bias
        self._run = torch.ops.aten._weight_int8pack_mm.default

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = self._run(x.contiguous(), self._weight, self._scale)
        return product if self._bias is None else product.add_(self._bias)


class Int8RowsLinear(TensorLinear):
    """8-bit weights, inputs quantized to 8 bits with a scale per row: bitsandbytes' CUDA kernel."""

    def __init__(self, weight: Tensor, absmax: Tensor, bias: Tensor | None = None) -> None:
        """Make a layer. int8 [out, in], largest number per row: float32 [out], [out]"""
        import medusa_core.models.quant.quiet_bitsandbytes  # noqa: F401 - registers the kernels

        weight = weight.contiguous()
        super().__init__("int8 rows", Int8RowsLinear, weight, absmax, bias)
        self._weight, self._absmax, self._bias = weight, absmax, bias
        kernels = torch.ops.bitsandbytes
        self._quantize = kernels.int8_vectorwise_quant.default
        self._run = kernels.int8_scaled_mm.default

    def __call__(self, x: Tensor) -> Tensor:
        # The kernel takes float16 alone. Casting others keeps everything up to 65,280 and costs one
        # more pass over the inputs.
        halves = x if x.dtype == torch.float16 else x.clamp(*_FLOAT16_RANGE).half()
        rounded, absmax, _ = self._quantize(halves.contiguous(), 0.0)
        product: Tensor = self._run(
            rounded, self._weight, absmax, self._absmax, self._bias, x.dtype
        )
        return product


def int8_rows_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> Int8RowsLinear:
    """Make a layer of weights and their scales. int8 [out, in], any float dtype [out]"""
    # The kernels divide by 127 themselves: they expect each row's largest number.
    return Int8RowsLinear(weight, scale.float() * 127, bias)
