"""Root-mean-square normalisation in few operations.

Torch's own `rms_norm` runs as a dozen small operations on a CPU and takes a fifth of a small
model's step.

Source: Root Mean Square Layer Normalization (Zhang and Sennrich 2019).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


def widened(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 or better."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


class RmsNorm:
    """x · weight / √(mean(x²) + ε), computed in float32 or better.

    Attributes:
        weight: [hidden], float32 or float64
        eps: ε
    """

    def __init__(self, weight: Tensor, eps: float) -> None:
        self._wide = torch.promote_types(weight.dtype, torch.float32)
        self._dtype = weight.dtype
        self.weight = weight.to(self._wide)
        self.eps = eps
        self._eps = torch.full((1, 1), eps, dtype=self._wide, device=weight.device)
        self._mean = 1 / len(weight)

    def __call__(self, x: Tensor) -> Tensor:
        """[n, hidden] → [n, hidden], in the weight's dtype"""
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=self._wide)
        scale = torch.addcmul(self._eps, length, length, value=self._mean).rsqrt_()
        return (x * scale).mul_(self.weight).to(self._dtype)


class QkNorm(Protocol):
    """Norm of queries and keys in fused rows; values pass through unchanged."""

    def __call__(self, qkv: Tensor) -> Tensor:
        """[n, (q heads + any) · head_dim], normalised but for the values."""

    @property
    def q_weight(self) -> Tensor:
        """Weight of queries: of one head, or of all at once. [head_dim] or [q heads · head_dim]"""

    @property
    def k_weight(self) -> Tensor | None:
        """Weight of keys, likewise; None where rows have no keys."""


class HeadNorm:
    """`RmsNorm` of each query and key head, before RoPE.

    Attributes:
        weight: [q heads + kv heads, head_dim]
        norm: Norm of a head, without the weight.

    Source: Qwen3 (Yang et al. 2025), section 2.
    """

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.norm = RmsNorm(weight.new_ones(weight.shape[-1]), eps)
        self.weight = weight

    def __call__(self, qkv: Tensor) -> Tensor:
        """[n, (q heads + 2 · kv heads) · head_dim], normalised but for the values."""
        num_heads, head_dim = self.weight.shape
        rows = qkv.view(len(qkv), -1, head_dim)
        q_and_k = rows[:, :num_heads]
        normed = self.norm(q_and_k.reshape(-1, head_dim)).view(q_and_k.shape) * self.weight
        return torch.cat([normed, rows[:, num_heads:]], dim=1).view(qkv.shape)

    @property
    def q_weight(self) -> Tensor:
        """Weight of each query head; all are equal. [head_dim]"""
        return self.weight[0]

    @property
    def k_weight(self) -> Tensor:
        """Weight of each key head; all are equal. [head_dim]"""
        return self.weight[-1]


class SplitQkNorm:
    """`RmsNorm` of queries and another of keys: of each head on its own, or of all at once.

    Attributes:
        q_norm: Norm of queries.
        k_norm: Norm of keys; None where rows have none.
    """

    def __init__(self, q_norm: RmsNorm, k_norm: RmsNorm | None, q_width: int, k_width: int) -> None:
        """Take the norms.

        Args:
            q_norm: Norm of queries; its weight says how many numbers are normalised together.
            k_norm: Norm of keys.
            q_width: Width of all query heads; 0 for rows without queries.
            k_width: Width of all key heads; 0 without `k_norm`.
        """
        self.q_norm = q_norm
        self.k_norm = k_norm
        self._widths = q_width, k_width

    def __call__(self, qkv: Tensor) -> Tensor:
        """[n, (q heads + any) · head_dim], normalised but for the values."""
        q_width, k_width = self._widths
        parts = [_normed_in_parts(self.q_norm, qkv[:, :q_width])] if q_width else []
        if self.k_norm is not None:
            parts.append(_normed_in_parts(self.k_norm, qkv[:, q_width : q_width + k_width]))
        return torch.cat([*parts, qkv[:, q_width + k_width :]], dim=-1)

    @property
    def of_keys(self) -> SplitQkNorm:
        """The norm of rows of keys and values alone."""
        return SplitQkNorm(self.q_norm, self.k_norm, 0, self._widths[1])

    @property
    def q_weight(self) -> Tensor:
        """Weight of one query head, or of all. [head_dim] or [q heads · head_dim]"""
        return self.q_norm.weight

    @property
    def k_weight(self) -> Tensor | None:
        """Weight of one key head, or of all; None without keys."""
        return None if self.k_norm is None else self.k_norm.weight


class GatedNorm:
    """`RmsNorm` of each group on its own, and a gate before or after it (Mamba-2).

    Attributes:
        weight: [inner], float32 or float64
        eps: ε
        group_width: Numbers that are normalised together.
        gates_first: Rows are multiplied by the gate before they are normalised.
    """

    def __init__(self, weight: Tensor, groups: int, eps: float, gates_first: bool) -> None:
        self.weight = weight
        self.eps = eps
        self.group_width = len(weight) // groups
        self.gates_first = gates_first
        self._eps = torch.full((1,), eps, dtype=weight.dtype, device=weight.device)

    def __call__(self, x: Tensor, gate: Tensor) -> Tensor:
        """[n, inner] both, in the weight's dtype."""
        x = x * gate if self.gates_first else x
        grouped = x.view(len(x), -1, self.group_width)
        scale = grouped.square().mean(dim=-1, keepdim=True).add_(self._eps).rsqrt_()
        normed = (grouped * scale).view(x.shape).mul_(self.weight)
        return normed if self.gates_first else normed.mul_(gate)


def _normed_in_parts(norm: RmsNorm, rows: Tensor) -> Tensor:
    """Normalize each group of as many numbers as the weight has. [n, any]"""
    return norm(rows.reshape(-1, len(norm.weight))).view(rows.shape)
