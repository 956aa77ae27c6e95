"""Order of a projection's rows: heads whose rotated numbers are stored as halves or as pairs."""

from __future__ import annotations

import torch
from torch import Tensor


def interleave_rows(weight: Tensor, head_dim: int, turned: int = 0) -> Tensor:
    """Reorder projection rows from halves (0…d/2, d/2…d) to pairs (0, d/2, 1, d/2+1, …).

    Args:
        weight: [heads · head_dim, ...], a weight or a bias.
        head_dim: Numbers per head.
        turned: How many of them, from the first on, are turned; 0 for all. The others stay.
    """
    if turned and turned < head_dim:
        heads = weight.view(-1, head_dim, *weight.shape[1:])
        first = interleave_rows(heads[:, :turned].flatten(0, 1), turned)
        parts = [first.view(-1, turned, *weight.shape[1:]), heads[:, turned:]]
        return torch.cat(parts, dim=1).view(weight.shape)
    halves = weight.view(-1, 2, head_dim // 2, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape)


def in_halves(heads: Tensor) -> Tensor:
    """Heads that lie in pairs for a rotation, as they were before. [n, heads, head_dim]"""
    return heads.reshape(*heads.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)
