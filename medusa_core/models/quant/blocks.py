"""Block-quantized weights as codes and scales, and helpers that unpack stored bytes.

All block types have one form: weight = scale · (code − offset) − minimum. The scale is that of the
block (`d`), or for K-quants `d` times an integer of each sub-block; the minimum likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows of weights as codes and scales.

    Attributes:
        codes: uint8. [rows, columns]
        offset: Code that stands for 0.
        d: Scales of blocks, float16 or float32. [rows, blocks]
        a: Scales of sub-blocks as integer multiples of `d`, int16; None if there are no sub-blocks.
            [rows, sub-blocks]
        m: Minima of blocks, float16 or float32; None if there are none. [rows, blocks]
        b: Minima of sub-blocks as integer multiples of `m`, int16; None if there are no sub-blocks.
            [rows, sub-blocks]
        unit: A power of two that multiplies every scale: its product with a `d` may be too small
            for float16.
    """

    codes: Tensor
    offset: int
    d: Tensor
    a: Tensor | None = None
    m: Tensor | None = None
    b: Tensor | None = None
    unit: float = 1.0

    @property
    def scales(self) -> Tensor:
        """Scales of all sub-blocks. float32 [rows, sub-blocks]"""
        return _times(self.d.float() * self.unit, self.a)

    @property
    def minima(self) -> Tensor | None:
        """Minima of all sub-blocks, or None. float32 [rows, sub-blocks]"""
        return None if self.m is None else _times(self.m.float(), self.b)

    def numbers(self) -> Tensor:
        """Dequantize to float32. [rows, columns]"""
        rows, columns = self.codes.shape
        scales, minima = self.scales, self.minima
        numbers = self.codes.view(rows, scales.shape[1], -1).float().sub_(self.offset)
        numbers.mul_(scales[..., None])
        if minima is not None:
            numbers.sub_(minima[..., None])
        return numbers.view(rows, columns)


def float16_at(stored: Tensor, at: int) -> Tensor:
    """Read the float16 at a byte of every block. [rows, blocks, bytes] → [rows, blocks]"""
    return stored[..., at : at + 2].contiguous().view(torch.float16).squeeze(-1)


def nibbles(stored: Tensor) -> Tensor:
    """Unpack all low nibbles, then all high ones. [..., n] → [..., 2 n]"""
    return torch.cat([stored & 15, stored >> 4], dim=-1)


def bits(stored: Tensor) -> Tensor:
    """Unpack the bits of bytes, the lowest first. [..., n] → [..., 8 n]"""
    shifts = torch.arange(8, dtype=torch.uint8)
    return (stored[..., None] >> shifts & 1).flatten(-2)


def chunks(stored: Tensor, first: int, count: int, size: int) -> Tensor:
    """Slice `count` runs of `size` bytes out of each block. → [rows, blocks, count, size]"""
    return stored[..., first : first + count * size].reshape(*stored.shape[:-1], count, size)


def flat(codes: Tensor) -> Tensor:
    """Flatten all dimensions but the first. [rows, …] → [rows, columns]"""
    return codes.flatten(1)


def _times(of_blocks: Tensor, multiples: Tensor | None) -> Tensor:
    """Multiply the scales of blocks by the integer scales of their sub-blocks."""
    if multiples is None:
        return of_blocks
    repeats = multiples.shape[1] // of_blocks.shape[1]
    return of_blocks.repeat_interleave(repeats, dim=1).mul_(multiples)
