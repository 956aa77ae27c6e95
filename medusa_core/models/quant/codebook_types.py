"""GGUF's IQ types: codes are indices into a codebook of four or eight weights, plus their signs.

A sub-block's scale is d × an integer × a power of two, and a weight is one of at most 16 integers;
so such weights can be widened to 4 bits each without rounding.

Source: the layouts of llama.cpp's `ggml-common.h`, as its `gguf` package reads them.
`resources/codebooks.safetensors` holds that file's grids (MIT), without which the format is
undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.models.quant.blocks import Blocks, bits, chunks, flat, float16_at, nibbles
from medusa_core.system.resources import resources_dir

IQ4_LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
IQ3_S_LEVELS = (-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15)
IQ3_XXS_LEVELS = (-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62)
IQ2_LEVELS = (-43, -25, -8, 8, 25, 43)
IQ1_LEVELS = (-9, -7, -1, 1, 7, 9)  # eight times −1, 0 and 1, plus or minus one


@cache
def codebooks() -> dict[str, Tensor]:
    """Return the codebooks by type, uint8 [entries, 8 or 4]; `iq1` is signed, as bytes."""
    return load_file(resources_dir() / "codebooks.safetensors")


def _iq4_xs(stored: Tensor) -> Blocks:
    """Decode IQ4_XS: indices into 16 levels, with 6-bit scales per 32 weights."""
    low = stored[..., 4:8].short()
    low = torch.stack([low & 15, low >> 4], dim=-1).flatten(-2)
    high = _words(stored, 2, 4, torch.int16) >> 2 * torch.arange(8, dtype=torch.int16) & 3
    levels = torch.tensor(IQ4_LEVELS, dtype=torch.int16) + 128
    codes = levels.to(torch.uint8)[nibbles(chunks(stored, 8, 8, 16)).int()]
    return Blocks(flat(codes), 128, float16_at(stored, 0), flat(low | high << 4) - 32)


def _iq3_s(stored: Tensor) -> Blocks:
    """Decode IQ3_S: 9-bit codebook indices of 4 weights, explicit signs, 4-bit scales."""
    indices = _with_bits(stored[..., 2:66], bits(stored[..., 66:74]))
    numbers = codebooks()["iq3_s"][indices]
    return _signed(stored, numbers, bits(stored[..., 74:106]), stored[..., 106:110], 1.0, 15)


def _iq3_xxs(stored: Tensor) -> Blocks:
    """Decode IQ3_XXS: 8-bit codebook indices of 4 weights, signs packed with scales."""
    numbers = codebooks()["iq3_xxs"][stored[..., 2:66].int()]
    a, signs = _scale_and_signs(_words(stored, 66, 98, torch.int32))
    return _blocks(stored, numbers, signs, a, 0.25, 62)


def _iq2_s(stored: Tensor) -> Blocks:
    """Decode IQ2_S: 10-bit codebook indices of 8 weights, explicit signs, 4-bit scales."""
    twos = stored[..., 66:74, None] >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8) & 3
    indices = _with_bits(stored[..., 2:34], twos.flatten(-2))
    numbers = codebooks()["iq2_s"][indices]
    return _signed(stored, numbers, bits(stored[..., 34:66]), stored[..., 74:82], 0.125, 43)


def _iq2_xs(stored: Tensor) -> Blocks:
    """Decode IQ2_XS: 9-bit codebook indices of 8 weights with 7 bits of signs, 4-bit scales."""
    words = _words(stored, 2, 66, torch.int16).int() & 0xFFFF
    numbers = codebooks()["iq2_xs"][words & 511]
    return _signed(stored, numbers, _even_signs(words >> 9), stored[..., 66:74], 0.125, 43)


def _iq2_xxs(stored: Tensor) -> Blocks:
    """Decode IQ2_XXS: 8-bit codebook indices of 8 weights, signs packed with scales."""
    words = _words(stored, 2, 66, torch.int32).view(*stored.shape[:2], 8, 2)
    indices = words[..., :1].contiguous().view(torch.uint8).int()
    a, signs = _scale_and_signs(words[..., 1])
    return _blocks(stored, codebooks()["iq2_xxs"][indices], signs, a, 0.125, 43)


def _iq1_s(stored: Tensor) -> Blocks:
    """Decode IQ1_S: 11-bit codebook indices of 8 ternary weights, 3-bit scales, a shift of ±1/8."""
    high = _words(stored, 34, 50, torch.int16).int()[..., None]
    indices = _with_bits(stored[..., 2:34], (high >> torch.tensor([0, 3, 6, 9]) & 7).flatten(-2))
    a = (2 * (high >> 12 & 7) + 1).short()
    return _shifted(indices, high >> 15 & 1, 4, float16_at(stored, 0), flat(a))


def _iq1_m(stored: Tensor) -> Blocks:
    """Decode IQ1_M: IQ1_S with a shift per 8 weights; nibbles hold the block's float16 scale."""
    high = (stored[..., 32:48, None] >> torch.tensor([0, 4], dtype=torch.uint8)).flatten(-2)
    scales = _words(stored, 48, 56, torch.int16).int() & 0xFFFF
    d = (scales >> 12 << torch.tensor([0, 4, 8, 12])).sum(-1, dtype=torch.int32)
    a = 2 * (scales[..., None] >> torch.tensor([0, 3, 6, 9]) & 7) + 1
    indices = _with_bits(stored[..., :32], high & 7)
    return _shifted(indices, high >> 3 & 1, 1, d.short().view(torch.float16), flat(a.short()))


def _signed(
    stored: Tensor, numbers: Tensor, signs: Tensor, scales: Tensor, unit: float, offset: int
) -> Blocks:
    """Decode blocks whose sub-blocks have scales of 4 bits.

    Args:
        stored: [rows, blocks, bytes]
        numbers: Magnitudes. [rows, blocks, ...]
        signs: 1 for negative weights. [rows, blocks, 256]
        scales: Two per byte. [rows, blocks, bytes]
        unit: As in `Blocks`.
        offset: As in `Blocks`.
    """
    both = torch.stack([scales & 15, scales >> 4], dim=-1).short()
    return _blocks(stored, numbers, signs, 2 * both + 1, unit, offset)


def _blocks(
    stored: Tensor, numbers: Tensor, signs: Tensor, a: Tensor, unit: float, offset: int
) -> Blocks:
    """Apply signs to codebook magnitudes and collect codes and scales."""
    numbers, signs = flat(numbers), flat(signs)
    codes = torch.where(signs.bool(), offset - numbers, offset + numbers)
    return Blocks(codes, offset, float16_at(stored, 0), flat(a), unit=unit)


def _shifted(
    indices: Tensor, is_less: Tensor, codes_per_shift: int, d: Tensor, a: Tensor
) -> Blocks:
    """Decode blocks whose weights are −1, 0 or 1 plus or minus an eighth (IQ1).

    Args:
        indices: Codebook indices, of eight weights each. [rows, blocks, 32]
        is_less: 1 for a shift of −1/8, 0 for +1/8. [rows, blocks, ...]
        codes_per_shift: Number of codebook indices that share a shift.
        d: As in `Blocks`.
        a: As in `Blocks`.
    """
    delta = (1 - 2 * is_less).flatten(2).repeat_interleave(codes_per_shift, dim=2).to(torch.int8)
    codes = 8 * codebooks()["iq1"][indices].view(torch.int8) + delta[..., None] + 9
    return Blocks(flat(codes.to(torch.uint8)), 9, d, a, unit=0.125)


def _with_bits(low: Tensor, high: Tensor) -> Tensor:
    """Combine the low eight and the high bits of codebook indices. int32"""
    return low.int() | high.int() << 8


def _words(stored: Tensor, first: int, stop: int, dtype: torch.dtype) -> Tensor:
    """Read bytes of every block as integers. [rows, blocks, words]"""
    return stored[..., first:stop].clone(memory_format=torch.contiguous_format).view(dtype)


def _scale_and_signs(words: Tensor) -> tuple[Tensor, Tensor]:
    """Unpack words of 4 bits of scale and four times 7 bits of signs. [rows, blocks, 8] →"""
    a = (2 * (words >> 28 & 15) + 1).short()
    return a, _even_signs((words[..., None] >> torch.tensor([0, 7, 14, 21]) & 127).flatten(-2))


def _even_signs(seven: Tensor) -> Tensor:
    """Restore eight signs from seven: an even number is set, so the last isn't stored.

    [rows, blocks, n] → uint8 [rows, blocks, 8 n]
    """
    signs = seven[..., None] >> torch.arange(7) & 1
    return torch.cat([signs, signs.sum(-1, keepdim=True) & 1], dim=-1).to(torch.uint8).flatten(-2)


CODEBOOK_DECODERS: dict[str, Callable[[Tensor], Blocks]] = {
    "iq4_xs": _iq4_xs,
    "iq3_s": _iq3_s,
    "iq3_xxs": _iq3_xxs,
    "iq2_s": _iq2_s,
    "iq2_xs": _iq2_xs,
    "iq2_xxs": _iq2_xxs,
    "iq1_m": _iq1_m,
    "iq1_s": _iq1_s,
}
