"""Dequantization of linear layers in any weight format."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear

UNITS = 256  # unit vectors per product


@torch.no_grad()
def dequantize_linear(
    linear: QuantLinear, outputs: int, inputs: int, precision: Precision
) -> tuple[Tensor, Tensor]:
    """Return a layer's matrix and bias, computed from its outputs for unit vectors and for zero.

    Args:
        outputs: Number of outputs.
        inputs: Number of inputs.
        precision: Compute dtype and device.

    Returns:
        [outputs, inputs], [outputs], in the compute dtype.
    """
    dtype, device = precision.compute, precision.device
    bias = linear(torch.zeros(1, inputs, dtype=dtype, device=device))[0]
    units = torch.eye(inputs, dtype=dtype, device=device)
    matrix = torch.empty(outputs, inputs, dtype=dtype, device=device)
    for start in range(0, inputs, UNITS):
        part = slice(start, start + UNITS)
        matrix[:, part] = (linear(units[part]) - bias).T
    return matrix, bias
