"""A linear layer whose weights lie as the compiled step wants them."""

from __future__ import annotations

import ctypes
from ctypes import addressof

import torch
from torch import Tensor

from medusa_core.native.binding import PANEL, native_library
from medusa_core.native.pool import Pool
from medusa_core.native.structs import LinearStruct

DTYPES = (torch.float32, torch.bfloat16)
_KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}  # of kinds.h
_NUMBERS = {torch.float32: 1, torch.bfloat16: 2, torch.int8: 4}  # of a word


class NativeLinear:
    """y = x Wᵀ + b; a row's result doesn't depend on the rows beside it.

    Attributes:
        nbytes: Bytes that the layer holds.
        num_outputs: Numbers that come out.
        num_inputs: Numbers that go in.
        struct: What the library is given; it lives as long as the layer.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        weight: Tensor,
        bias: Tensor | None,
        scale: Tensor | None = None,
    ) -> None:
        """Take weights.

        Args:
            library: What computes.
            weight: float32, bfloat16 or int8. [out, in]
            bias: [out], or None.
            scale: What int8 weights are multiples of, [out]; else None.
        """
        self._library = library
        self._weight = _panels(weight)
        self._bias = None if bias is None else bias.float().contiguous()
        self._scale = None if scale is None else scale.float().contiguous()
        self.num_outputs, self.num_inputs = weight.shape
        more = [tensor for tensor in (self._bias, self._scale) if tensor is not None]
        self.nbytes = weight.nbytes + sum(tensor.nbytes for tensor in more)
        self.struct = LinearStruct(
            weight=self._weight.data_ptr(),
            bias=None if self._bias is None else self._bias.data_ptr(),
            scale=None if self._scale is None else self._scale.data_ptr(),
            outputs=self.num_outputs,
            inputs=self.num_inputs,
            kind=_KINDS[weight.dtype],
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.run(x.to(torch.float32).contiguous()).to(x.dtype)

    def run(self, rows: Tensor, pool: Pool | None = None) -> Tensor:
        """[n, in] → [n, out], both float32 and contiguous; the workers of `pool` help."""
        count = len(rows)
        packed = torch.empty(count, self.num_inputs)
        y = torch.empty(count, self.num_outputs)
        self._library.linear(
            None if pool is None else pool.awake(),
            addressof(self.struct),
            rows.data_ptr(),
            packed.data_ptr(),
            count,
            None,
            y.data_ptr(),
        )
        return y

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)


def native_linear(weight: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """A layer for the compiled step, or None where there is none for such weights.

    Args:
        weight: [out, in]
        bias: [out], or None.
    """
    if weight.device.type != "cpu" or weight.dtype not in DTYPES or weight.shape[1] % 2:
        return None
    library = native_library()
    return None if library is None else NativeLinear(library, weight, bias)


def native_int8_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """A layer of 8-bit weights for the compiled step, or None where there is none for them.

    Inputs are rounded to 8 bits as well, each 64 of a row by their own largest number.

    Args:
        weight: int8, both sizes multiples of 32. [out, in]
        scale: What the weights are multiples of. [out]
        bias: [out], or None.
    """
    library = native_library()
    fits = weight.is_cpu and weight.shape[0] % PANEL == 0 and weight.shape[1] % PANEL == 0
    return NativeLinear(library, weight, bias, scale) if library is not None and fits else None


def _panels(weight: Tensor) -> Tensor:
    """Panels of 32 outputs one after the other, as `Linear` of linear.h has it. [flat]"""
    outputs, inputs = weight.shape
    together = _NUMBERS[weight.dtype]
    whole = outputs // PANEL * PANEL
    packed = torch.empty(weight.numel(), dtype=weight.dtype)
    if whole:
        panels = weight[:whole].view(-1, PANEL, inputs // together, together).transpose(1, 2)
        packed[: whole * inputs].view(panels.shape).copy_(panels)
    if outputs > whole:
        rest = weight[whole:].reshape(outputs - whole, -1, together).transpose(0, 1)
        packed[whole * inputs :].view(rest.shape).copy_(rest)
    # A byte is 128 more than its number.
    return packed.view(torch.uint8).bitwise_xor_(128) if weight.dtype == torch.int8 else packed
