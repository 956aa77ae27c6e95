"""Rotary position embedding as a complex multiplication.

The rows of the query and key projections are reordered once at load so that the two numbers of a
rotation lie side by side; a rotation is then one complex product. Scores don't change: queries
and keys are reordered alike.

Source: RoFormer (Su et al. 2021), section 3.2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig, RopeConfig


def inverse_frequencies(rope: RopeConfig, rotary_dim: int, context_tokens: int = 0) -> Tensor:
    """Return radians per position of each rotated pair, in float64. [rotary_dim / 2]

    Args:
        rope: Configuration.
        rotary_dim: Numbers of a head that are rotated.
        context_tokens: Length of the longest text.

    Sources: YaRN (Peng et al. 2023), section 3; LongRoPE (Ding et al. 2024); Llama 3.1.
    """
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim
    plain = rope.theta**-exponents
    if rope.kind == "longrope":
        is_long = context_tokens > rope.original_context_tokens
        factors = rope.long_factors if is_long else rope.factors
        return plain / torch.tensor(factors, dtype=torch.float64)
    if rope.kind == "factors":
        return plain / torch.tensor(rope.factors, dtype=torch.float64)
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "llama3":
        return _llama3(plain, rope)
    return _yarn(plain, rope, rotary_dim) if rope.kind == "yarn" else plain


def _llama3(plain: Tensor, rope: RopeConfig) -> Tensor:
    """Divide the frequencies of slow pairs, keep those of fast ones, and interpolate between."""
    turns = rope.original_context_tokens * plain / (2 * math.pi)
    span = rope.high_freq_factor - rope.low_freq_factor
    blend = ((turns - rope.low_freq_factor) / span).clamp(0, 1)
    return plain * (blend + (1 - blend) / rope.factor)


def _yarn(plain: Tensor, rope: RopeConfig, rotary_dim: int) -> Tensor:
    """As `_llama3`, but interpolated linearly over the indices of the pairs between."""

    def pair_of(num_turns: float) -> float:
        """Index of the pair that rotates `num_turns` times in the original context."""
        ratio = rope.original_context_tokens / (num_turns * 2 * math.pi)
        return rotary_dim * math.log(ratio) / (2 * math.log(rope.theta))

    low, high = pair_of(rope.beta_fast), pair_of(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotary_dim - 1)
    high = high + 0.001 if low == high else high
    ramp = ((torch.arange(rotary_dim // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    return plain * (1 - ramp) + plain / rope.factor * ramp


class Rope:
    """Table of rotations by position."""

    def __init__(self, config: ModelConfig, dtype: torch.dtype, device: torch.device) -> None:
        wide = dtype == torch.float64
        self._complex = torch.complex128 if wide else torch.complex64
        # float32 angles where the reference computes in float32, so that both round alike
        self._angle_dtype = torch.float64 if wide else torch.float32
        rotary_dim = config.head_rows.rotary_dim
        self._frequencies = inverse_frequencies(config.rope, rotary_dim, config.context_tokens)
        self._attention_factor = config.rope.attention_factor
        self._num_fixed_pairs = (config.head_dim - rotary_dim) // 2
        self._device = device
        self._table = torch.empty(0, config.head_dim // 2, dtype=self._complex, device=device)

    def rotations(self, num_positions: int) -> Tensor:
        """Return at least `num_positions` rotations. [positions, head_dim / 2], complex"""
        if num_positions > len(self._table):
            self._extend(num_positions)
        return self._table

    def identity(self, num_rows: int, size: int) -> Tensor:
        """Return rotations by 0, for layers without RoPE. [num_rows, size], complex"""
        return torch.ones(num_rows, size, dtype=self._complex, device=self._device)

    def turn_at(self, position: int) -> Tensor:
        """Return the rotations at one position. [1, head_dim / 2], complex"""
        return self._turns_of(torch.tensor([position]))

    def _extend(self, num_positions: int) -> None:
        """Compute the table anew for more positions."""
        self._table = self._turns_of(torch.arange(num_positions))

    def _turns_of(self, positions: Tensor) -> Tensor:
        """Compute the rotations at some positions. [n] → [n, head_dim / 2], complex"""
        angles = torch.outer(
            positions.to(self._angle_dtype), self._frequencies.to(self._angle_dtype)
        )
        rotated = torch.polar(torch.full_like(angles, self._attention_factor), angles)
        table = torch.cat([rotated, rotated.new_ones(len(rotated), self._num_fixed_pairs)], dim=1)
        return table.to(device=self._device, dtype=self._complex)


def fused_factors(turn: Tensor, num_q: int, num_kv: int, scale: float) -> Tensor:
    """Return complex factors of fused rows: one product rotates keys and scales queries, too.

    Args:
        turn: Rotation of each row. [n, head_dim / 2], complex
        num_q: Query heads.
        num_kv: Key heads, and as many value heads, which aren't rotated; 0 for rows of queries.
        scale: Factor of queries.

    Returns:
        [n, q heads + 2 · kv heads, head_dim / 2], complex
    """
    factors = turn.new_ones(len(turn), num_q + 2 * num_kv, turn.shape[-1])
    factors[:, :num_q] = turn.unsqueeze(1) * scale
    factors[:, num_q : num_q + num_kv] = turn.unsqueeze(1)
    return factors


def rotate(qkv: Tensor, factors: Tensor) -> Tensor:
    """Rotate fused rows by their positions.

    Args:
        qkv: [n, (q heads + 2 · kv heads) · head_dim], any float dtype.
        factors: From `PassContext.factors`.

    Returns:
        [n, q heads + 2 · kv heads, head_dim], float32 (float64 with complex128 factors).
    """
    real = torch.float64 if factors.dtype == torch.complex128 else torch.float32
    pairs = qkv.to(real).view(*factors.shape, 2)
    return torch.view_as_real(torch.view_as_complex(pairs) * factors).flatten(-2)
