"""GGUF's block types: how stored bytes decode to codes and scales (`blocks.Blocks`).

Source: the layouts of llama.cpp's `ggml-common.h`, as its `gguf` package reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.quant.block_sizes import BLOCK_SIZES, BlockSizes
from medusa_core.models.quant.blocks import Blocks, bits, chunks, flat, float16_at, nibbles
from medusa_core.models.quant.codebook_types import CODEBOOK_DECODERS, IQ4_LEVELS
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.threads import for_ranges

# Types that the library dequantizes, and those that it repacks from their layout in files.
_DEQUANTIZED = frozenset(
    ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k"),
)
COMPILED_TYPES = _DEQUANTIZED | {"iq4_nl", "nf4_0", "mxfp4"}

# nf4's levels times 124: of all multiples that fit a byte this one has the smallest rounding error,
# 0.5 % of the norm of normally distributed weights.
_NF4_LEVELS = (-124, -86, -65, -49, -35, -23, -11, 0, 10, 20, 31, 42, 55, 70, 90, 124)
_MXFP4_LEVELS = (0, 1, 2, 3, 4, 6, 8, 12)  # twice the magnitudes of FP4 (E2M1)


@dataclass(frozen=True, slots=True)
class BlockType:
    """A block type of GGUF: its sizes, and how its bytes decode.

    Attributes:
        name: GGUF's name, in lower case.
        decode: Decodes stored bytes to codes and scales. uint8 [rows, blocks, bytes of a block] →
    """

    name: str
    sizes: BlockSizes
    decode: Callable[[Tensor], Blocks]

    def columns(self, stored: Tensor) -> int:
        """Number of weights of a stored row. uint8 [rows, bytes of a row] →"""
        return stored.shape[1] // self.sizes.nbytes * self.sizes.weights

    def blocks(self, stored: Tensor) -> Blocks:
        """Decode stored rows to codes and scales. uint8 [rows, bytes of a row] →"""
        return self.decode(stored.view(len(stored), -1, self.sizes.nbytes))

    def dequantize(self, stored: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Dequantize stored rows in float32. uint8 [rows, bytes of a row] → [rows, columns]"""
        library = native_library()
        if library is None or not stored.is_cpu or self.name not in _DEQUANTIZED:
            return self.blocks(stored).numbers().to(dtype)
        made = dtype if dtype in (torch.float32, torch.bfloat16) else torch.float32
        stored, number = stored.contiguous(), int(self.sizes.tiles.type)
        numbers = torch.empty(len(stored), self.columns(stored), dtype=made)
        per_row = stored.shape[1] // self.sizes.nbytes

        def convert(first: int, count: int) -> None:
            """Convert rows."""
            library.dequantize_blocks(
                *(number, stored[first].data_ptr(), count * per_row),
                *(made == torch.bfloat16, numbers[first].data_ptr()),
            )

        if len(stored):
            for_ranges(convert, len(stored), numbers.numel())
        return numbers.to(dtype)


def block_type(name: str) -> BlockType:
    """Look up a block type by name.

    Raises:
        CheckpointError: The type isn't supported.
    """
    if name not in BLOCK_TYPES:
        raise CheckpointError(
            tr("Weights of type {0} aren't supported.", name.upper()),
            tr("Choose a file with weights of {0}.", ", ".join(sorted(BLOCK_TYPES)).upper()),
        )
    return BLOCK_TYPES[name]


def _q4_0(stored: Tensor) -> Blocks:
    """Decode q4_0: d · (code − 8)."""
    return Blocks(flat(nibbles(stored[..., 2:])), 8, float16_at(stored, 0))


def _q4_1(stored: Tensor) -> Blocks:
    """Decode q4_1: d · code + m."""
    codes = flat(nibbles(stored[..., 4:]))
    return Blocks(codes, 0, float16_at(stored, 0), m=-float16_at(stored, 2))


def _q5_0(stored: Tensor) -> Blocks:
    """Decode q5_0: d · (code − 16), with the fifth bits of codes in a bit mask."""
    codes = nibbles(stored[..., 6:]) | bits(stored[..., 2:6]) << 4
    return Blocks(flat(codes), 16, float16_at(stored, 0))


def _q5_1(stored: Tensor) -> Blocks:
    """Decode q5_1: d · code + m, with the fifth bits of codes in a bit mask."""
    codes = nibbles(stored[..., 8:]) | bits(stored[..., 4:8]) << 4
    return Blocks(flat(codes), 0, float16_at(stored, 0), m=-float16_at(stored, 2))


def _q8_0(stored: Tensor) -> Blocks:
    """Decode q8_0: d · int8; flipping the sign bit makes codes unsigned with offset 128."""
    return Blocks(flat(stored[..., 2:] ^ 128), 128, float16_at(stored, 0))


def _from_table(numbers: tuple[int, ...], stored: Tensor) -> Blocks:
    """Decode 4-bit indices into a table of int8 levels (iq4_nl, nf4)."""
    levels = torch.tensor([number + 128 for number in numbers], dtype=torch.uint8)
    codes = levels[nibbles(stored[..., 2:]).int()]
    return Blocks(flat(codes), 128, float16_at(stored, 0))


def _mxfp4(stored: Tensor) -> Blocks:
    """Decode MXFP4: E2M1 codes with a shared E8M0 exponent per 32 weights."""
    levels = torch.tensor([128 + x for x in _MXFP4_LEVELS] + [128 - x for x in _MXFP4_LEVELS])
    codes = levels.to(torch.uint8)[nibbles(stored[..., 1:]).int()]
    exponent = stored[..., 0].int()
    # 2^(exponent − 128) is half of the format's scale, as the levels are doubled. The two smallest
    # scales are subnormal floats, so that their bits are set in the mantissa.
    bits = torch.where(exponent < 2, 0x00200000 << exponent.clamp(max=1), exponent - 1 << 23)
    return Blocks(flat(codes), 128, bits.int().view(torch.float32))


def _six_bits(stored: Tensor) -> tuple[Tensor, Tensor]:
    """Unpack 8 scales and 8 minima of 6 bits from 12 bytes. int16 [rows, 8 · blocks] each"""
    low, mid, high = (stored[..., i : i + 4].short() for i in (0, 4, 8))
    scales = torch.cat([low & 63, high & 15 | (low >> 6) << 4], dim=-1)
    minima = torch.cat([mid & 63, high >> 4 | (mid >> 6) << 4], dim=-1)
    return flat(scales), flat(minima)


def _two_bits(part: Tensor) -> Tensor:
    """Unpack pairs of bits, the lowest of all bytes first. [..., n] → [..., 4, n]"""
    shifts = torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]
    return part[..., None, :] >> shifts & 3


def _single_bits(stored: Tensor, first: int) -> Tensor:
    """Unpack 256 bits from 32 bytes, the lowest of all bytes first. [rows, columns]"""
    return flat(chunks(stored, first, 1, 32) >> torch.arange(8, dtype=torch.uint8)[:, None] & 1)


def _q4_k(stored: Tensor) -> Blocks:
    """Decode Q4_K: 8 sub-blocks of 32 with 6-bit scales and minima."""
    a, b = _six_bits(stored[..., 4:16])
    codes = nibbles(chunks(stored, 16, 4, 32))
    return Blocks(flat(codes), 0, float16_at(stored, 0), a, float16_at(stored, 2), b)


def _q5_k(stored: Tensor) -> Blocks:
    """Decode Q5_K: Q4_K with the fifth bits of codes in a bit mask."""
    a, b = _six_bits(stored[..., 4:16])
    high = _single_bits(stored, 16)
    codes = flat(nibbles(chunks(stored, 48, 4, 32))) | high << 4
    return Blocks(codes, 0, float16_at(stored, 0), a, float16_at(stored, 2), b)


def _q6_k(stored: Tensor) -> Blocks:
    """Decode Q6_K: 16 sub-blocks of 16 with int8 scales."""
    low = nibbles(chunks(stored, 0, 2, 64))
    high = _two_bits(chunks(stored, 128, 2, 32))
    a = stored[..., 192:208].contiguous().view(torch.int8).short()
    return Blocks(flat(low) | flat(high) << 4, 32, float16_at(stored, 208), flat(a))


def _q3_k(stored: Tensor) -> Blocks:
    """Decode Q3_K: 16 sub-blocks of 16 with 6-bit scales."""
    low = flat(_two_bits(chunks(stored, 32, 2, 32)))
    high = _single_bits(stored, 0)
    scales = stored[..., 96:108].short()
    fours = torch.cat([scales[..., :8] & 15, scales[..., :8] >> 4], dim=-1)
    twos = torch.cat([scales[..., 8:] >> shift & 3 for shift in (0, 2, 4, 6)], dim=-1)
    return Blocks(low | high << 2, 4, float16_at(stored, 108), flat(fours | twos << 4) - 32)


def _q2_k(stored: Tensor) -> Blocks:
    """Decode Q2_K: 16 sub-blocks of 16 with 4-bit scales and minima."""
    scales = stored[..., :16].short()
    codes = flat(_two_bits(chunks(stored, 16, 2, 32)))
    d, m = float16_at(stored, 80), float16_at(stored, 82)
    return Blocks(codes, 0, d, flat(scales & 15), m, flat(scales >> 4))


def _tq2_0(stored: Tensor) -> Blocks:
    """Decode TQ2_0: ternary weights in 2 bits each."""
    return Blocks(flat(_two_bits(chunks(stored, 0, 2, 32))), 1, float16_at(stored, 64))


def _tq1_0(stored: Tensor) -> Blocks:
    """Decode TQ1_0: a byte holds five ternary digits as a fraction; × 3 carries out the next."""
    groups = ((0, 32, 5), (32, 16, 5), (48, 4, 4))  # first byte, bytes, digits per byte
    digits = []
    for first, size, count in groups:
        power = torch.tensor([3**place for place in range(count)], dtype=torch.uint8)
        fractions = chunks(stored, first, 1, size) * power[:, None]
        digits.append((fractions.short() * 3 >> 8).to(torch.uint8).flatten(2))
    return Blocks(flat(torch.cat(digits, dim=2)), 1, float16_at(stored, 52))


_DECODERS: dict[str, Callable[[Tensor], Blocks]] = {
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "iq4_nl": partial(_from_table, IQ4_LEVELS),
    "nf4_0": partial(_from_table, _NF4_LEVELS),
    "mxfp4": _mxfp4,
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
    "tq1_0": _tq1_0,
    "tq2_0": _tq2_0,
    **CODEBOOK_DECODERS,
}
BLOCK_TYPES = {name: BlockType(name, sizes, _DECODERS[name]) for name, sizes in BLOCK_SIZES.items()}
