"""Rotary position embedding as a complex multiplication.

The rows of the query and key projections are reordered once at load so that the two numbers of a
rotation lie side by side; a rotation is then one complex product. Scores don't change: queries
and keys are reordered alike.

Source: RoFormer (Su et al. 2021), section 3.2; Llama 3.1's frequency scaling.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig, RopeConfig


def interleave_rows(weight: Tensor, head_dim: int) -> Tensor:
    """Reorder projection rows from halves (0…d/2, d/2…d) to pairs (0, d/2, 1, d/2+1, …).

    Args:
        weight: [heads · head_dim, ...], a weight or a bias.
        head_dim: Numbers per head.
    """
    halves = weight.view(-1, 2, head_dim // 2, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape)


def inverse_frequencies(rope: RopeConfig, head_dim: int) -> Tensor:
    """Radians per position of every pair, in float64. [head_dim / 2]"""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    plain = rope.theta**-exponents
    if rope.kind == "factors":
        return plain / torch.tensor(rope.factors, dtype=torch.float64)
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "llama3":
        return _llama3(plain, rope)
    return plain


def _llama3(plain: Tensor, rope: RopeConfig) -> Tensor:
    """Stretch slow pairs fully, fast ones not at all, and blend between."""
    turns = rope.original_context_tokens * plain / (2 * math.pi)
    span = rope.high_freq_factor - rope.low_freq_factor
    blend = ((turns - rope.low_freq_factor) / span).clamp(0, 1)
    return plain * (blend + (1 - blend) / rope.factor)


class Rope:
    """Rotations for the fused query, key and value rows of one model.

    Queries are scaled by 1/√head_dim on the way, and values pass through a rotation by nothing,
    so that a block needs one multiplication for all three.
    """

    def __init__(self, config: ModelConfig, dtype: torch.dtype, device: torch.device) -> None:
        wide = dtype == torch.float64
        self._complex = torch.complex128 if wide else torch.complex64
        # float32 angles where the reference computes in float32, so that both round alike
        self._angle_dtype = torch.float64 if wide else torch.float32
        self._frequencies = inverse_frequencies(config.rope, config.head_dim)
        self._device = device
        self._scale = 1 / math.sqrt(config.head_dim)
        self._num_q = config.num_heads
        self._num_kv = config.num_kv_heads
        self._table = torch.empty(0, config.head_dim // 2, dtype=self._complex, device=device)

    def rotations(self, positions: Tensor, num_positions: int) -> Tensor:
        """Factors for rows at these positions.

        Args:
            positions: [n], int64.
            num_positions: One more than the highest position that may occur.

        Returns:
            [n, q heads + 2 · kv heads, head_dim / 2], complex.
        """
        turn = self.turns(num_positions).index_select(0, positions).unsqueeze(1)
        heads = self._num_q + 2 * self._num_kv
        factors = turn.new_ones(len(positions), heads, turn.shape[-1])
        factors[:, : self._num_q] = turn * self._scale
        factors[:, self._num_q : self._num_q + self._num_kv] = turn
        return factors

    def turns(self, num_positions: int) -> Tensor:
        """Rotations of at least so many positions. [positions, head_dim / 2], complex"""
        if num_positions > len(self._table):
            self._extend(num_positions)
        return self._table

    def _extend(self, num_positions: int) -> None:
        positions = torch.arange(num_positions, dtype=self._angle_dtype)
        angles = torch.outer(positions, self._frequencies.to(self._angle_dtype))
        table = torch.polar(torch.ones_like(angles), angles)
        self._table = table.to(device=self._device, dtype=self._complex)


def rotate(qkv: Tensor, factors: Tensor) -> Tensor:
    """Turn fused rows by their positions.

    Args:
        qkv: [n, (q heads + 2 · kv heads) · head_dim], any float dtype.
        factors: From `Rope.rotations`.

    Returns:
        [n, q heads + 2 · kv heads, head_dim], float32 (float64 with complex128 factors).
    """
    real = torch.float64 if factors.dtype == torch.complex128 else torch.float32
    pairs = qkv.to(real).view(*factors.shape, 2)
    return torch.view_as_real(torch.view_as_complex(pairs) * factors).flatten(-2)
