"""A short convolution along a block, whose weights depend on the place: DFlash2's.

What a half of a layer reads, and what it makes, is mixed with the places before it: each channel by
weights of its own, and each group of channels by what a projection says of the place.

Source: z-lab/dflash, `GroupedDynamicCausalConv` (read, not copied).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.layout import QuantLinear


@dataclass(frozen=True, slots=True)
class BlockConvolution:
    """Around one half of a layer.

    Attributes:
        kernels: Of every channel, before the half and behind it. [2, width, hidden]
        projection: To what is added for each group, before and behind. → [2 · width · groups]
    """

    kernels: Tensor
    projection: QuantLinear

    def before(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What the half reads, and what `behind` needs. [n, hidden] → [n, hidden], [n, …]"""
        added = self.projection(x).view(len(x), 2, self.kernels.shape[1], -1)
        return _mixed(x, self.kernels[0], added[:, 0]), added[:, 1]

    def behind(self, made: Tensor, added: Tensor) -> Tensor:
        """What is added to the places. [n, hidden] → [n, hidden]"""
        return _mixed(made, self.kernels[1], added)


def _mixed(x: Tensor, kernel: Tensor, added: Tensor) -> Tensor:
    """Each place with those before it.

    Args:
        x: [n, hidden]
        kernel: Weights of 0, 1, ... places before, by channel. [width, hidden]
        added: What is added to them, by group. [n, width, groups]
    """
    size = x.shape[1] // added.shape[2]
    weights = kernel + added.repeat_interleave(size, dim=2)  # [n, width, hidden]
    mixed = weights[:, 0] * x
    for back in range(1, min(weights.shape[1], len(x))):
        mixed = mixed + weights[:, back] * F.pad(x[:-back], (0, 0, back, 0))
    return mixed
