"""Weights of few bits as codes and scales, and how they are unpacked from stored bytes.

Every type comes down to one form: a weight is scale × (code − offset) − least. A block's scale is
`d`, or d × a small whole number for each part of a larger block; what is least, likewise.
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
        offset: The code that means zero.
        d: Of every block, float16 or float32. [rows, blocks]
        a: What a part's scale is a multiple of `d` by, int16; None where parts are blocks.
            [rows, parts]
        m: Of every block what its least is a multiple of; None where nothing is taken off.
            [rows, blocks]
        b: What a part's least is a multiple of `m` by, int16; None where parts are blocks.
            [rows, parts]
        unit: A power of two that every scale is multiplied with: a `d` times it may not be a
            float16.
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
        """Of every part. float32 [rows, parts]"""
        return _times(self.d.float() * self.unit, self.a)

    @property
    def leasts(self) -> Tensor | None:
        """Of every part, or None. float32 [rows, parts]"""
        return None if self.m is None else _times(self.m.float(), self.b)

    def numbers(self) -> Tensor:
        """The weights. float32 [rows, columns]"""
        rows, columns = self.codes.shape
        scales, leasts = self.scales, self.leasts
        parts = self.codes.view(rows, scales.shape[1], -1).float().sub_(self.offset)
        numbers = parts.mul_(scales[..., None])
        if leasts is not None:
            numbers = numbers.sub_(leasts[..., None])
        return numbers.view(rows, columns)


def float16_at(stored: Tensor, at: int) -> Tensor:
    """The number at that byte of every block. [rows, blocks, bytes] → [rows, blocks]"""
    return stored[..., at : at + 2].contiguous().view(torch.float16).squeeze(-1)


def nibbles(stored: Tensor) -> Tensor:
    """Low nibbles, then high ones. [..., n] → [..., 2 n]"""
    return torch.cat([stored & 15, stored >> 4], dim=-1)


def bits(stored: Tensor) -> Tensor:
    """Every bit of the bytes. [..., n] → [..., 8 n]"""
    shifts = torch.arange(8, dtype=torch.uint8)
    return (stored[..., None] >> shifts & 1).flatten(-2)


def chunks(stored: Tensor, first: int, count: int, size: int) -> Tensor:
    """[rows, blocks, bytes] → [rows, blocks, count, size]"""
    return stored[..., first : first + count * size].reshape(*stored.shape[:-1], count, size)


def flat(codes: Tensor) -> Tensor:
    """[rows, ...] → [rows, columns]"""
    return codes.flatten(1)


def _times(wide: Tensor, of_parts: Tensor | None) -> Tensor:
    if of_parts is None:
        return wide
    repeats = of_parts.shape[1] // wide.shape[1]
    return wide.repeat_interleave(repeats, dim=1).mul_(of_parts)
