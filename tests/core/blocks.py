"""Blocks of few bits, drawn at random: every byte means something, only scales must be numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.quant.block_sizes import BLOCK_SIZES

# Where the float16 scales of each type lie in a block.
_SCALES = {
    **dict.fromkeys(("q4_0", "q5_0", "q8_0", "iq4_nl"), (0,)),
    **dict.fromkeys(("q4_1", "q5_1", "q4_k", "q5_k"), (0, 2)),
    "q6_k": (208,),
    "q3_k": (108,),
    "q2_k": (80, 82),
}


def random_blocks(name: str, rows: int, columns: int, seed: int) -> Tensor:
    """Stored rows. uint8 [rows, bytes of a row]"""
    generator = torch.Generator().manual_seed(seed)
    of = BLOCK_SIZES[name]
    shape = (rows, columns // of.weights, of.nbytes)
    stored = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    for at in _SCALES.get(name, ()):
        scales = torch.randn(shape[:2], generator=generator).half() * 0.01
        stored[..., at : at + 2] = scales[..., None].view(torch.uint8)
    if name == "mxfp4":
        stored[..., 0] = torch.randint(115, 125, shape[:2], generator=generator)
    return stored.flatten(1)
