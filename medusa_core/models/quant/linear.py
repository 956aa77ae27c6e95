"""Linear layers behind one call, and the dense ones: prepacked where that is faster."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.layout import (
    LinearLayout,
    QuantLinear,
    bias_of,
    with_bias,
)
from medusa_core.models.quant.native_linear import native_linear
from medusa_core.system.native.binding import native_library


class DenseLinear:
    """Weights as they are."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    @property
    def nbytes(self) -> int:
        return self._weight.nbytes + (0 if self._bias is None else self._bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias).add_(residual)

    def first(self, count: int) -> DenseLinear:
        """A layer of the first outputs, over the same memory."""
        return DenseLinear(self._weight[:count], None if self._bias is None else self._bias[:count])

    def layout(self) -> LinearLayout:
        return LinearLayout("dense", with_bias((self._weight,), self._bias), _dense_again)


class PackedLinear:
    """Weights reordered once for oneDNN, which otherwise reorders bfloat16 at every call."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.nbytes = weight.nbytes + (0 if bias is None else bias.nbytes)
        self._bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 1)
        self._run = torch.ops.mkldnn._linear_pointwise.default
        self._run_binary = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = self._run(x, self._packed, self._bias, "none", [], "")
        return result

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        result: Tensor = self._run_binary(x, residual, self._packed, self._bias, "add")
        return result

    def layout(self) -> LinearLayout:
        # oneDNN's order has no address: elsewhere the weights lie as they were.
        return LinearLayout(
            "dense", with_bias((self._packed.to_dense(),), self._bias), _dense_again
        )


def _dense_again(tensors: Sequence[Tensor]) -> DenseLinear:
    return DenseLinear(tensors[0], bias_of(tensors, 1))


def make_linear(weight: Tensor, bias: Tensor | None = None) -> QuantLinear:
    """The fastest linear layer for these weights where they are.

    Args:
        weight: [out, in]
        bias: [out], or None.
    """
    native = native_linear(weight, bias)
    if native is not None:
        return native
    if weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and torch_packs_bfloat16():
        return PackedLinear(weight, bias)
    return DenseLinear(weight.contiguous(), bias)


def torch_packs_bfloat16() -> bool:
    """Does torch multiply bfloat16 fast on this CPU, and in an order of its own?"""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def packed_dtypes() -> tuple[str, ...]:
    """Names of the dtypes whose weights a CPU keeps in an order of its own."""
    if native_library() is not None:
        return ("float32", "bfloat16")
    return ("bfloat16",) if torch_packs_bfloat16() else ()
