"""What linear layers hold, in plain numbers, whatever their weight format."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear

UNITS = 256  # unit vectors multiplied at once


@torch.no_grad()
def matrix_of(
    linear: QuantLinear, outputs: int, inputs: int, precision: Precision
) -> tuple[Tensor, Tensor]:
    """A layer's matrix and bias: what it makes of unit vectors, and of nothing.

    Args:
        linear: The layer.
        outputs: Numbers that come out.
        inputs: Numbers that go in.
        precision: In which dtype it computes, and where.

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
