"""Short dynamic convolution around one half of a block (DFlash2).

The input and the output of attention, or of the MLP, are convolved over the rows before: each
channel by its own kernel, plus a kernel per group of channels that a projection of the row gives.

Source: z-lab/dflash, `GroupedDynamicCausalConv` (read, not copied).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.layout import QuantLinear


@dataclass(frozen=True, slots=True)
class DynamicConvolution:
    """Convolutions before and after one half of a block.

    Attributes:
        kernels: Static kernels of each channel, before and after the half. [2, width, hidden]
        projection: Projection to the dynamic kernels of both. → [2 · width · groups]
    """

    kernels: Tensor
    projection: QuantLinear

    def before(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Convolve the input of the half.

        Args:
            x: Consecutive rows of one sequence. [n, hidden]

        Returns:
            The convolved rows, [n, hidden], and the dynamic kernels for `after`.
        """
        dynamic = self.projection(x).view(len(x), 2, self.kernels.shape[1], -1)
        return _convolve(x, self.kernels[0], dynamic[:, 0]), dynamic[:, 1]

    def after(self, output: Tensor, dynamic: Tensor) -> Tensor:
        """Convolve the output of the half. [n, hidden] → [n, hidden]"""
        return _convolve(output, self.kernels[1], dynamic)


def _convolve(x: Tensor, kernel: Tensor, dynamic: Tensor) -> Tensor:
    """Convolve rows causally.

    Args:
        x: [n, hidden]
        kernel: Tap k is that of the row k places before. [width, hidden]
        dynamic: Addends of the taps of each group of channels. [n, width, groups]
    """
    taps = kernel + dynamic.repeat_interleave(x.shape[1] // dynamic.shape[2], dim=2)
    mixed = taps[:, 0] * x
    for back in range(1, min(taps.shape[1], len(x))):
        mixed = mixed + taps[:, back] * F.pad(x[:-back], (0, 0, back, 0))
    return mixed
