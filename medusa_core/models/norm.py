"""Root-mean-square normalisation in few operations.

Torch's own `rms_norm` runs as a dozen small operations on a CPU and takes a fifth of a small
model's step.

Source: Root Mean Square Layer Normalization (Zhang and Sennrich 2019).
"""

from __future__ import annotations

import torch
from torch import Tensor


class RmsNorm:
    """x · weight / √(mean(x²) + ε), computed in float32 or better."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self._wide = torch.promote_types(weight.dtype, torch.float32)
        self._dtype = weight.dtype
        self._weight = weight.to(self._wide)
        self._eps = torch.full((1, 1), eps, dtype=self._wide, device=weight.device)
        self._mean = 1 / len(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """[n, hidden] → [n, hidden], in the weight's dtype"""
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=self._wide)
        scale = torch.addcmul(self._eps, length, length, value=self._mean).rsqrt_()
        return (x * scale).mul_(self._weight).to(self._dtype)
