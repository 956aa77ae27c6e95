"""A linear layer whose weights lie as the compiled step wants them."""

from __future__ import annotations

import ctypes
from ctypes import addressof

import torch
from torch import Tensor

from medusa_core.native.library import PANEL, LinearStruct, native_library
from medusa_core.native.pool import Pool

DTYPES = (torch.float32, torch.bfloat16)


class NativeLinear:
    """y = x Wᵀ + b; a row's result doesn't depend on the rows beside it.

    Attributes:
        nbytes: Bytes that the layer holds.
        num_outputs: Numbers that come out.
        num_inputs: Numbers that go in.
        struct: What the library is given; it lives as long as the layer.
    """

    def __init__(self, library: ctypes.CDLL, weight: Tensor, bias: Tensor | None) -> None:
        self._library = library
        self._weight = _panels(weight)
        self._bias = None if bias is None else bias.float().contiguous()
        self.num_outputs, self.num_inputs = weight.shape
        self.nbytes = weight.nbytes + (0 if self._bias is None else self._bias.nbytes)
        self.struct = LinearStruct(
            weight=self._weight.data_ptr(),
            bias=None if self._bias is None else self._bias.data_ptr(),
            outputs=self.num_outputs,
            inputs=self.num_inputs,
            is_half=weight.dtype == torch.bfloat16,
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


def _panels(weight: Tensor) -> Tensor:
    """Panels of 32 outputs one after the other, as `Linear` of linear.h has it. [flat]"""
    outputs, inputs = weight.shape
    together = 2 if weight.dtype == torch.bfloat16 else 1
    whole = outputs // PANEL * PANEL
    packed = torch.empty(weight.numel(), dtype=weight.dtype)
    if whole:
        panels = weight[:whole].view(-1, PANEL, inputs // together, together).transpose(1, 2)
        packed[: whole * inputs].view(panels.shape).copy_(panels)
    if outputs > whole:
        rest = weight[whole:].reshape(outputs - whole, -1, together).transpose(0, 1)
        packed[whole * inputs :].view(rest.shape).copy_(rest)
    return packed
