"""Parts of layers that learn to draft: norms and rotations."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Norm(nn.Module):
    """Root-mean-square normalisation in float32, whatever else is computed in."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scale = (wide.pow(2).mean(-1, keepdim=True) + self._eps).rsqrt()
        return wide * scale * self.weight


def angles(places: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of places.

    Args:
        places: Of tokens. int64 [...]
        head_dim: Numbers of an attention head.
        theta: Base of the rotations.

    Returns:
        Each float32 [..., head_dim / 2].
    """
    half = head_dim // 2
    exponents = torch.arange(half, device=places.device) / half
    turns = places[..., None] * theta**-exponents
    return turns.cos(), turns.sin()


def turned(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Halves of attention heads turned by their places. [..., head_dim]"""
    a, b = heads.float().chunk(2, dim=-1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)
