"""Sizes of quantization blocks, in files and in the compiled step. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass

TILE, BLOCK, SUPER = 16, 32, 256  # of blocks.h: outputs of a tile, inputs of a block, of eight
NF4_BLOCK = 64  # weights that share a scale in bitsandbytes' nf4
NF4_NESTED_BLOCK = 256  # scales that share a scale, with double quantization


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Layout of block-quantized weights in the compiled step.

    Attributes:
        kind: Number in kinds.h.
        block: Bytes of a block of all 16 outputs of a tile, scales included.
        above: Bytes that precede every eight blocks: the scales of a super-block.
    """

    kind: int
    block: int
    above: int = 0

    def nbytes(self, rows: int, columns: int) -> int:
        """Bytes of a matrix, with the last tile padded."""
        per_tile = columns // BLOCK * self.block + columns // SUPER * self.above
        return -(-rows // TILE) * per_tile


Q4_0 = TileSizes(3, 288)
Q8_0 = TileSizes(4, 544)
Q4_K = TileSizes(5, 288, 64)
Q5_K = TileSizes(6, 352, 64)
Q6_K = TileSizes(7, 416, 32)
WIDE = TileSizes(8, 768)
MXFP4 = TileSizes(9, 272)
IQ4_NL = TileSizes(10, 288)
NF4 = TileSizes(11, 288)
Q4_1 = TileSizes(12, 320)
Q5_0 = TileSizes(13, 352)
Q5_1 = TileSizes(14, 384)
IQ4_XS = TileSizes(15, 288, 32)
IQ3_S = TileSizes(16, 288, 32)
IQ3_XXS = TileSizes(17, 288, 32)
IQ2 = TileSizes(18, 288, 32)
IQ1 = TileSizes(19, 288, 32)


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Sizes of a block type in a file.

    Attributes:
        weights: Weights of a block.
        nbytes: Bytes of a block.
        tiles: Layout in the compiled step, which represents the same numbers exactly.
    """

    weights: int
    nbytes: int
    tiles: TileSizes

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row."""
        return columns // self.weights * self.nbytes


# By GGUF's names, in lower case; nf4_0 is our own: bitsandbytes' nf4 converted for a CPU.
BLOCK_SIZES = {
    "q4_0": BlockSizes(32, 18, Q4_0),
    "q4_1": BlockSizes(32, 20, Q4_1),
    "q5_0": BlockSizes(32, 22, Q5_0),
    "q5_1": BlockSizes(32, 24, Q5_1),
    "q8_0": BlockSizes(32, 34, Q8_0),
    "iq4_nl": BlockSizes(32, 18, IQ4_NL),
    "nf4_0": BlockSizes(32, 18, NF4),
    "mxfp4": BlockSizes(32, 17, MXFP4),
    "q2_k": BlockSizes(256, 84, WIDE),
    "q3_k": BlockSizes(256, 110, Q6_K),
    "q4_k": BlockSizes(256, 144, Q4_K),
    "q5_k": BlockSizes(256, 176, Q5_K),
    "q6_k": BlockSizes(256, 210, Q6_K),
    "iq4_xs": BlockSizes(256, 136, IQ4_XS),
    "iq3_s": BlockSizes(256, 110, IQ3_S),
    "iq3_xxs": BlockSizes(256, 98, IQ3_XXS),
    "iq2_s": BlockSizes(256, 82, IQ2),
    "iq2_xs": BlockSizes(256, 74, IQ2),
    "iq2_xxs": BlockSizes(256, 66, IQ2),
    "iq1_m": BlockSizes(256, 56, IQ1),
    "iq1_s": BlockSizes(256, 50, IQ1),
    "tq2_0": BlockSizes(256, 66, Q4_0),
    "tq1_0": BlockSizes(256, 54, Q4_0),
}
