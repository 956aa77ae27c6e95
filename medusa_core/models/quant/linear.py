"""Dense linear layers: `make_linear` chooses the fastest for the weights' dtype and device."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.layout import LinearLayout, QuantLinear, TensorLinear
from medusa_core.models.quant.native_linear import NativeLinear, native_linear
from medusa_core.system.native.binding import native_library


class DenseLinear(TensorLinear):
    """torch's `linear` with unquantized weights."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__("dense", DenseLinear, weight, bias)
        self._weight, self._bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)

    def first(self, count: int) -> DenseLinear:
        """Return a layer of the first outputs that shares this layer's memory."""
        return DenseLinear(self._weight[:count], None if self._bias is None else self._bias[:count])


class PackedLinear(TensorLinear):
    """Weights reordered once for oneDNN, which otherwise reorders bfloat16 at every call."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__("dense", DenseLinear)
        self.nbytes = weight.nbytes + (0 if bias is None else bias.nbytes)
        self._bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 1)
        self._run = torch.ops.mkldnn._linear_pointwise.default
        self._run_binary = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = self._run(x, self._packed, self._bias, "none", [], "")
        return result

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual in oneDNN's fused kernel. [n, in], [n, out] → [n, out]"""
        result: Tensor = self._run_binary(x, residual, self._packed, self._bias, "add")
        return result

    def layout(self) -> LinearLayout:
        """Return the layout of an unpacked layer."""
        # oneDNN's order has no address that could be copied, so the copy is an ordinary matrix.
        return DenseLinear(self._packed.to_dense(), self._bias).layout()


def make_linear(weight: Tensor, bias: Tensor | None = None) -> QuantLinear:
    """Make the fastest linear layer for these weights on their device.

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


def first_outputs(linear: QuantLinear, count: int) -> QuantLinear | None:
    """Return a layer of the first outputs; None if layers of this class can't be sliced.

    Args:
        linear: The whole layer, which must outlive the result: they share memory.
        count: Number of outputs; a multiple of 32.
    """
    return linear.first(count) if isinstance(linear, NativeLinear | DenseLinear) else None


def cached_first_outputs(
    linear: QuantLinear, count: int, cache: dict[int, QuantLinear]
) -> QuantLinear:
    """Return a layer of the first outputs, or the whole layer if it can't be sliced.

    Args:
        linear: The whole layer, which must outlive the result.
        count: Number of outputs, a multiple of 32; 0 for all.
        cache: Layers made by earlier calls, by `count`.
    """
    if not count:
        return linear
    if count not in cache:
        cache[count] = first_outputs(linear, count) or linear
    return cache[count]


def torch_packs_bfloat16() -> bool:
    """Whether oneDNN has fast bfloat16 products on this CPU."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def packed_dtypes() -> tuple[str, ...]:
    """Return the names of the dtypes whose weights are reordered on a CPU."""
    if native_library() is not None:
        return ("float32", "bfloat16")
    return ("bfloat16",) if torch_packs_bfloat16() else ()
