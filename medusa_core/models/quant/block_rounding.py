"""Quantize weights to block types: q4_0 and q8_0 as llama.cpp does, q4 with least squares."""

from __future__ import annotations

from ctypes import CDLL

import torch
from torch import Tensor

from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import BLOCK
from medusa_core.system.native.threads import for_ranges

_SCALE_FACTORS = (1.0, 0.9)  # of q4_0's scale, from which the best scale is searched
_CHUNK_WEIGHTS = 1 << 22  # weights that are quantized at a time


def round_to(name: str, weight: Tensor) -> Tensor:
    """Quantize a matrix.

    Args:
        name: A key of `_ROUNDINGS`.
        weight: Any floating dtype. [rows, columns]

    Returns:
        uint8 [rows, bytes of a row]
    """
    if name == "q4" and weight.is_cpu and (library := native_library()) is not None:
        return _compiled_q4(library, weight.float().contiguous())
    rows = max(1, _CHUNK_WEIGHTS // weight.shape[1])
    return torch.cat([_ROUNDINGS[name](chunk.float()) for chunk in torch.split(weight, rows)])


def _compiled_q4(library: CDLL, weight: Tensor) -> Tensor:
    """Do what `_round_q4` does, on the library's threads. float32 [rows, columns] →"""
    rows, columns = weight.shape
    blocks = torch.empty(rows, BLOCK_SIZES["q4_0"].row_bytes(columns), dtype=torch.uint8)

    def quantize(first: int, count: int) -> None:
        """Quantize rows."""
        to = blocks[first].data_ptr()
        library.quantize_q4(weight[first].data_ptr(), count * columns // BLOCK, to)

    if rows:
        for_ranges(quantize, rows, rows * columns)
    return blocks


def _round_q4_0(weight: Tensor) -> Tensor:
    """Quantize as llama.cpp does: the number farthest from zero becomes −8 times the scale."""
    blocks = weight.view(len(weight), -1, BLOCK)
    scale = _farthest(blocks) / -8
    # Codes are truncated after adding a half, at the float32 reciprocal of the unrounded scale.
    codes = (blocks * _reciprocal(scale) + 8.5).to(torch.uint8).clamp_(max=15)
    return _q4_0(scale.half(), codes)


def _round_q4(weight: Tensor) -> Tensor:
    """Quantize to q4_0 blocks with the scales of least squares.

    From two fractions of llama.cpp's scale: round, then take the scale that is optimal for these
    codes; the better result is kept. On normally distributed weights the relative error falls from
    0.0861 to 0.0825.
    """
    blocks = weight.view(len(weight), -1, BLOCK)
    farthest = _farthest(blocks) / -8
    candidates, errors = [], []
    for factor in _SCALE_FACTORS:
        scale = _best_scale(blocks, farthest * factor).half()
        codes = _codes(blocks, scale.float())
        errors.append((codes * scale.float()).sub_(blocks).square_().sum(-1, keepdim=True))
        packed = _q4_0(scale, (codes + 8).to(torch.uint8))
        candidates.append(packed.view(*blocks.shape[:2], -1))
    return torch.where(errors[1] < errors[0], candidates[1], candidates[0]).flatten(1)


def _round_q8_0(weight: Tensor) -> Tensor:
    """Quantize to Q8_0 blocks as llama.cpp does, with a scale of the largest magnitude ÷ 127.

    [rows, columns] → uint8 [rows, bytes of a row]
    """
    blocks = weight.view(len(weight), -1, BLOCK)
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    scaled = blocks * _reciprocal(scale)
    # Rounds half away from zero; torch's `round` would round half to even.
    codes = (scaled.abs() + 0.5).floor_().mul_(scaled.sign()).to(torch.int8)
    return torch.cat([scale.half().view(torch.uint8), codes.view(torch.uint8)], -1).flatten(1)


def _farthest(blocks: Tensor) -> Tensor:
    """Return the number of each block that is farthest from zero. [rows, blocks, 1]"""
    return blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))


def _reciprocal(scale: Tensor) -> Tensor:
    """Return 1 / scale; 0 for blocks whose weights are all 0."""
    return torch.where(scale == 0, 0.0, 1 / scale)


def _codes(blocks: Tensor, scale: Tensor) -> Tensor:
    """Round weights to codes from −8 to 7."""
    return (blocks * _reciprocal(scale)).round_().clamp_(-8, 7)


def _best_scale(blocks: Tensor, scale: Tensor) -> Tensor:
    """Return the least-squares scale for the codes that `scale` leads to."""
    codes = _codes(blocks, scale)
    squares = codes.square().sum(-1, keepdim=True)
    products = (codes * blocks).sum(-1, keepdim=True)
    return torch.where(squares == 0, scale, products / squares.clamp(min=1))


def _q4_0(scale: Tensor, codes: Tensor) -> Tensor:
    """Pack float16 scales and 4-bit codes into q4_0 blocks. uint8 [rows, bytes of a row]"""
    nibbles = codes[..., :16] | codes[..., 16:] << 4
    return torch.cat([scale.view(torch.uint8), nibbles], -1).flatten(1)


# float32 [rows, columns] → uint8 [rows, bytes of a row]
_ROUNDINGS = {"q4": _round_q4, "q4_0": _round_q4_0, "q8_0": _round_q8_0}
