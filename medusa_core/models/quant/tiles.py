"""Blocks of few bits as the compiled step wants them: `blocks.h` describes the tiles.

A type that the kernels don't know is laid out as a wider one that holds the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.models.quant.block_sizes import (
    BLOCK,
    IQ1,
    IQ2,
    IQ3_S,
    IQ3_XXS,
    IQ4_NL,
    IQ4_XS,
    MXFP4,
    NF4,
    Q4_0,
    Q4_1,
    Q4_K,
    Q5_0,
    Q5_1,
    Q5_K,
    Q6_K,
    Q8_0,
    SUPER,
    TILE,
    WIDE,
    TileSizes,
)
from medusa_core.models.quant.block_types import BlockType
from medusa_core.models.quant.blocks import Blocks
from medusa_core.models.quant.codebook_types import (
    IQ1_LEVELS,
    IQ2_LEVELS,
    IQ3_S_LEVELS,
    IQ3_XXS_LEVELS,
    IQ4_LEVELS,
)

_SLAB = 1 << 23  # weights that are laid out at a time: a few bytes of scratch for each
_AS_STORED = (Q4_0, Q4_1, MXFP4, IQ4_NL, NF4)
_OFFSETS = {Q4_0: 8, Q8_0: 128, Q6_K: 32, WIDE: 128}
_IN_FIVE_BITS = (Q5_0, Q5_1, Q5_K)
_LEVELS = {
    IQ4_XS: IQ4_LEVELS,
    IQ3_S: IQ3_S_LEVELS,
    IQ3_XXS: IQ3_XXS_LEVELS,
    IQ2: IQ2_LEVELS,
    IQ1: IQ1_LEVELS,
}


def lay_out(of: BlockType, stored: Tensor) -> Tensor:
    """Stored rows in tiles of 16, the last one filled up with zeros.

    Args:
        of: The type.
        stored: uint8. [rows, bytes of a row]

    Returns:
        uint8 [bytes]
    """
    rows, columns = len(stored), of.columns(stored)
    to = torch.empty(of.sizes.tiles.nbytes(rows, columns), dtype=torch.uint8)
    together = max(TILE, _SLAB // columns // TILE * TILE)
    per_tile = to.numel() // -(-rows // TILE)
    for first in range(0, rows, together):
        slab = stored[first : first + together]
        if missing := -len(slab) % TILE:
            slab = torch.cat([slab, slab.new_zeros(missing, slab.shape[1])])
        at = first // TILE * per_tile
        size = len(slab) // TILE * per_tile
        to[at : at + size].view(len(slab) // TILE, -1).copy_(_tiles(of, slab))
    return to


def _tiles(of: BlockType, stored: Tensor) -> Tensor:
    """[rows, bytes of a row] → uint8 [tiles, bytes of a tile]"""
    kind = of.sizes.tiles
    if kind in _AS_STORED and of.sizes.weights == BLOCK:  # nibbles lie as the kernel wants them
        blocks = stored.view(len(stored), -1, of.sizes.nbytes)
        scales = blocks[..., : -BLOCK // 2].contiguous()
        numbers = scales if kind is MXFP4 else scales.view(torch.float16)
        each = [_beside(number) for number in numbers.unbind(-1)]
        return torch.cat([*each, _words(blocks[..., -BLOCK // 2 :])], dim=2).flatten(1)
    found = of.blocks(stored)
    codes = found.codes
    if kind in _LEVELS:
        codes = _places(_LEVELS[kind], found)
    elif kind in _OFFSETS and found.offset != _OFFSETS[kind]:
        codes = codes + (_OFFSETS[kind] - found.offset)
    body = torch.cat([_block_scales(found, kind), _codes(codes, kind)], dim=2)
    if not kind.above:
        return body.flatten(1)
    eights = body.view(len(body), -1, SUPER // BLOCK * body.shape[2])
    above = [_beside(part) for part in (found.d, found.m) if part is not None]
    return torch.cat([*above, eights], dim=2).flatten(1)


def _block_scales(found: Blocks, kind: TileSizes) -> Tensor:
    """What stands before each block's codes. uint8 [tiles, blocks, bytes]"""
    blocks = found.codes.shape[1] // BLOCK
    if kind in (Q4_0, Q8_0, Q5_0):
        return _beside(_each(found.d, blocks))
    if kind is Q5_1:
        assert found.m is not None
        return torch.cat([_beside(found.d), _beside(-found.m)], dim=2)
    if kind is Q6_K or kind in _LEVELS:
        assert found.a is not None
        halves = _beside(_each(found.a.to(torch.int8), 2 * blocks))
        return halves.view(len(halves), -1, 2 * TILE)
    if kind in (Q4_K, Q5_K):
        assert found.a is not None
        assert found.b is not None
        return torch.cat([_beside(part.to(torch.uint8)) for part in (found.a, found.b)], dim=2)
    scales, leasts = found.scales, found.leasts
    leasts = torch.zeros_like(scales) if leasts is None else leasts
    both = torch.cat([_beside(_each(part, 2 * blocks)) for part in (scales, leasts)], dim=2)
    return both.view(len(both), -1, 2 * both.shape[2])


def _each(of_parts: Tensor, count: int) -> Tensor:
    """Numbers of parts as those of smaller ones. [rows, parts] → [rows, count]"""
    return of_parts.repeat_interleave(count // of_parts.shape[1], dim=1)


def _places(levels: Sequence[int], found: Blocks) -> Tensor:
    """Codes as places in a kernel's table of levels."""
    place_of = torch.zeros(256, dtype=torch.uint8)
    for place, level in enumerate(levels):
        place_of[level + found.offset] = place
    return place_of[found.codes.int()]


def _codes(codes: Tensor, kind: TileSizes) -> Tensor:
    """Codes as words, 16 outputs side by side. uint8 [tiles, blocks, bytes]"""
    blocks = codes.view(len(codes), -1, BLOCK)
    if kind in (Q8_0, WIDE):
        return _words(blocks)
    low = blocks & 15
    nibbles = _words(low[..., :16] | low[..., 16:] << 4)
    if kind in (Q4_0, Q4_K) or kind in _LEVELS:
        return nibbles
    if kind in _IN_FIVE_BITS:
        fifth = (blocks >> 4).view(*blocks.shape[:2], BLOCK // 4, 4)
        places = torch.arange(BLOCK // 4, dtype=torch.uint8)[:, None]
        return torch.cat([nibbles, _words((fifth << places).sum(2, dtype=torch.uint8))], dim=2)
    high = (blocks >> 4).view(len(codes), -1, 2, 4, 4)
    twos = high[..., 0, :] | high[..., 1, :] << 2 | high[..., 2, :] << 4 | high[..., 3, :] << 6
    return torch.cat([nibbles, _words(twos.flatten(2))], dim=2)


def _words(of_blocks: Tensor) -> Tensor:
    """Words of four bytes, 16 rows' beside each other.

    uint8 [rows, blocks, n] → [tiles, blocks, 16 n]
    """
    rows, blocks, _ = of_blocks.shape
    words = of_blocks.contiguous().view(torch.int32).view(rows // TILE, TILE, blocks, -1)
    beside = words.permute(0, 2, 3, 1).contiguous()
    return beside.view(torch.uint8).view(rows // TILE, blocks, -1)


def _beside(numbers: Tensor) -> Tensor:
    """16 rows' numbers beside each other. [rows, n] → uint8 [tiles, n, bytes of 16]"""
    rows, count = numbers.shape
    beside = numbers.view(rows // TILE, TILE, count).transpose(1, 2).contiguous()
    return beside.view(torch.uint8).view(rows // TILE, count, -1)
