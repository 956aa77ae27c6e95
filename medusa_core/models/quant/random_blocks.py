"""Random block-quantized weights: any byte is a valid code, only scales must be finite."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.models.quant.block_sizes import BLOCK_SIZES

_MAX_DRAWN = 1 << 17  # blocks; larger matrices repeat them
# Offsets of the float16 scales in a block, and the scale at which weights have unit variance.
_SCALES = {
    **dict.fromkeys(("q4_0", "q5_0", "q8_0", "iq4_nl", "nf4_0"), (0,)),
    **dict.fromkeys(("q4_1", "q5_1", "q4_k", "q5_k"), (0, 2)),
    "q6_k": (208,),
    "q3_k": (108,),
    "q2_k": (80, 82),
    **dict.fromkeys(("iq4_xs", "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_s"), (0,)),
    "tq2_0": (64,),
    "tq1_0": (52,),
}
_SPREAD = {
    "q4_0": 0.2,
    "q4_1": 0.1,
    "q5_0": 0.1,
    "q5_1": 0.05,
    "q8_0": 0.013,
    "iq4_nl": 0.015,
    "nf4_0": 0.015,
    "q2_k": 0.05,
    "q3_k": 0.02,
    "q4_k": 0.005,
    "q5_k": 0.002,
    "q6_k": 0.0007,
    "iq4_xs": 0.001,
    "iq3_s": 0.006,
    "iq3_xxs": 0.006,
    "iq2_s": 0.02,
    "iq2_xs": 0.02,
    "iq2_xxs": 0.02,
    "iq1_s": 0.12,
    "iq1_m": 0.12,
    "tq2_0": 1.2,
    "tq1_0": 1.2,
}
_EXPONENTS = {"mxfp4": (115, 122)}  # of types whose scale is a power of two


def random_blocks(name: str, rows: int, columns: int, seed: int = 0) -> Tensor:
    """Draw weights with a standard deviation of about 1/√columns.

    Args:
        name: A key of `BLOCK_SIZES`.
        rows: Rows.
        columns: Columns; a multiple of the block's weights.
        seed: Seed of the generator; the rows are added to it.

    Returns:
        uint8 [rows, bytes of a row]
    """
    sizes = BLOCK_SIZES[name]
    generator = torch.Generator().manual_seed(seed + rows)
    count = rows * columns // sizes.weights
    shape = (min(count, _MAX_DRAWN), sizes.nbytes)
    blocks = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    for at in _SCALES.get(name, ()):
        scales = torch.randn(len(blocks), generator=generator) * _SPREAD[name] / columns**0.5
        blocks[:, at : at + 2] = scales.half()[:, None].view(torch.uint8)
    if name == "iq1_m":
        _spread_scales(blocks, _SPREAD[name] / columns**0.5)
    if name in _EXPONENTS:
        blocks[:, 0] = torch.randint(*_EXPONENTS[name], (len(blocks),), generator=generator)
    repeats = -(-count // len(blocks))
    return blocks.repeat(repeats, 1)[:count].view(rows, -1)


def _spread_scales(blocks: Tensor, scale: float) -> None:
    """Set the scale of IQ1_M blocks: a float16 in four nibbles at the end of the block."""
    bits = int(torch.tensor(scale, dtype=torch.float16).view(torch.int16))
    for word in range(4):
        at = 48 + 2 * word + 1
        blocks[:, at] = blocks[:, at] & 15 | (bits >> 4 * word & 15) << 4
