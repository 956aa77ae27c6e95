"""Repack blocks into the tiles of the compiled step, which `blocks.h` describes.

The library repacks types that it has kernels for. Torch widens the others to one of these that
represents the same numbers exactly.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from medusa_core.models.quant.block_sizes import (
    IQ1,
    IQ2,
    IQ3_S,
    IQ3_XXS,
    IQ4_XS,
    Q4_0,
    Q6_K,
    Q8_AFFINE,
    TileSizes,
)
from medusa_core.models.quant.block_types import COMPILED_TYPES, BlockType
from medusa_core.models.quant.blocks import Blocks
from medusa_core.models.quant.codebook_types import (
    IQ1_LEVELS,
    IQ2_LEVELS,
    IQ3_S_LEVELS,
    IQ3_XXS_LEVELS,
    IQ4_LEVELS,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import BLOCK, SUPER, TILE
from medusa_core.system.native.threads import for_ranges

_HUGE_PAGE = 1 << 21  # bytes, on x86-64 and most of arm64
_MADV_HUGEPAGE = 14
_CHUNK_WEIGHTS = 1 << 23  # weights that are repacked at a time: a few bytes of scratch each
_OFFSETS = {Q4_0: 8, Q6_K: 32, Q8_AFFINE: 128}
_LEVELS = {
    IQ4_XS: IQ4_LEVELS,
    IQ3_S: IQ3_S_LEVELS,
    IQ3_XXS: IQ3_XXS_LEVELS,
    IQ2: IQ2_LEVELS,
    IQ1: IQ1_LEVELS,
}


def tile_blocks(kind: BlockType, stored: Tensor) -> Tensor:
    """Repack stored rows into tiles of 16, the last one padded with zeros.

    Args:
        kind: Block type.
        stored: uint8. [rows, bytes of a row]

    Returns:
        uint8 [bytes]
    """
    rows, columns = len(stored), kind.columns(stored)
    tiles = torch.empty(kind.sizes.tiles.nbytes(rows, columns), dtype=torch.uint8)
    prefer_huge_pages(tiles.data_ptr(), tiles.numel())
    tile_bytes = tiles.numel() // -(-rows // TILE)
    library = native_library()
    if library is not None and kind.name in COMPILED_TYPES:
        stored, number = stored.contiguous(), int(kind.sizes.tiles.type)

        def repack(first: int, count: int) -> None:
            """Repack rows from a multiple of 16 on."""
            to = tiles[first // TILE * tile_bytes :]
            library.tile_blocks(number, stored[first].data_ptr(), count, columns, to.data_ptr())

        for_ranges(repack, rows, rows * columns, TILE)
        return tiles
    chunk_rows = max(TILE, _CHUNK_WEIGHTS // columns // TILE * TILE)
    for first in range(0, rows, chunk_rows):
        chunk = stored[first : first + chunk_rows]
        if missing := -len(chunk) % TILE:
            chunk = torch.cat([chunk, chunk.new_zeros(missing, chunk.shape[1])])
        at = first // TILE * tile_bytes
        size = len(chunk) // TILE * tile_bytes
        tiles[at : at + size].view(len(chunk) // TILE, -1).copy_(_tiles(kind, chunk))
    return tiles


def _tiles(kind: BlockType, stored: Tensor) -> Tensor:
    """Repack stored rows. [rows, bytes of a row] → uint8 [tiles, bytes of a tile]"""
    layout = kind.sizes.tiles
    decoded = kind.blocks(stored)
    codes = decoded.codes
    if layout in _LEVELS:
        codes = _level_indices(_LEVELS[layout], decoded)
    elif layout in _OFFSETS and decoded.offset != _OFFSETS[layout]:
        codes = codes + (_OFFSETS[layout] - decoded.offset)
    body = torch.cat([_block_scales(decoded, layout), _code_words(codes, layout)], dim=2)
    if not layout.above:
        return body.flatten(1)
    super_blocks = body.view(len(body), -1, SUPER // BLOCK * body.shape[2])
    above = [_columns(part) for part in (decoded.d, decoded.m) if part is not None]
    return torch.cat([*above, super_blocks], dim=2).flatten(1)


def _block_scales(decoded: Blocks, layout: TileSizes) -> Tensor:
    """Return the scales that precede each block's codes. uint8 [tiles, blocks, bytes]"""
    blocks = decoded.codes.shape[1] // BLOCK
    if layout is Q4_0:
        return _columns(_repeated(decoded.d, blocks))
    if layout is Q6_K or layout in _LEVELS:
        assert decoded.a is not None
        halves = _columns(_repeated(decoded.a.to(torch.int8), 2 * blocks))
        return halves.view(len(halves), -1, 2 * TILE)
    scales, minima = decoded.scales, decoded.minima
    minima = torch.zeros_like(scales) if minima is None else minima
    both = torch.cat([_columns(_repeated(part, 2 * blocks)) for part in (scales, minima)], dim=2)
    return both.view(len(both), -1, 2 * both.shape[2])


def _repeated(scales: Tensor, count: int) -> Tensor:
    """Repeat scales for smaller sub-blocks. [rows, sub-blocks] → [rows, count]"""
    return scales.repeat_interleave(count // scales.shape[1], dim=1)


def _level_indices(levels: Sequence[int], decoded: Blocks) -> Tensor:
    """Return codes as indices into a kernel's table of levels."""
    index_of = torch.zeros(256, dtype=torch.uint8)
    for index, level in enumerate(levels):
        index_of[level + decoded.offset] = index
    return index_of[decoded.codes.int()]


def _code_words(codes: Tensor, layout: TileSizes) -> Tensor:
    """Pack codes into words, those of 16 outputs interleaved. uint8 [tiles, blocks, bytes]"""
    blocks = codes.view(len(codes), -1, BLOCK)
    if layout is Q8_AFFINE:
        return _words(blocks)
    low = blocks & 15
    nibbles = _words(low[..., :16] | low[..., 16:] << 4)
    if layout is not Q6_K:
        return nibbles
    high = (blocks >> 4).view(len(codes), -1, 2, 4, 4)
    twos = high[..., 0, :] | high[..., 1, :] << 2 | high[..., 2, :] << 4 | high[..., 3, :] << 6
    return torch.cat([nibbles, _words(twos.flatten(2))], dim=2)


def _words(blocks: Tensor) -> Tensor:
    """Interleave 32-bit words of 16 rows. uint8 [rows, blocks, n] → [tiles, blocks, 16 n]"""
    rows, count, _ = blocks.shape
    words = blocks.contiguous().view(torch.int32).view(rows // TILE, TILE, count, -1)
    interleaved = words.permute(0, 2, 3, 1).contiguous()
    return interleaved.view(torch.uint8).view(rows // TILE, count, -1)


def _columns(numbers: Tensor) -> Tensor:
    """Interleave numbers of 16 rows. [rows, n] → uint8 [tiles, n, bytes of 16 numbers]"""
    rows, count = numbers.shape
    interleaved = numbers.view(rows // TILE, TILE, count).transpose(1, 2).contiguous()
    return interleaved.view(torch.uint8).view(rows // TILE, count, -1)


def prefer_huge_pages(address: int, nbytes: int) -> None:
    """Ask Linux to back memory that was not written yet by huge pages; no effect elsewhere.

    The processor fetches ahead within a page only. No more memory is taken: only huge pages that
    lie inside the range are asked for.

    Args:
        address: Address of the first byte.
        nbytes: Size of the memory.
    """
    first = -(-address // _HUGE_PAGE) * _HUGE_PAGE
    end = (address + nbytes) // _HUGE_PAGE * _HUGE_PAGE
    madvise = _madvise()
    if madvise is not None and end > first:
        madvise(first, end - first, _MADV_HUGEPAGE)  # mere advice: the result doesn't matter


@cache
def _madvise() -> Any:
    """Return the C library's `madvise`; None outside Linux."""
    if platform.system() != "Linux":
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise
