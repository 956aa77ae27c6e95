"""Sizes of quantization blocks, in files and in the compiled step. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.system.native.constants import BLOCK, SUPER, TILE, TensorType

NF4_BLOCK = 64  # weights that share a scale in bitsandbytes' nf4
NF4_NESTED_BLOCK = 256  # scales that share a scale, with double quantization


@dataclass(frozen=True, slots=True)
class TileSizes:
    """Layout of block-quantized weights in the compiled step.

    Attributes:
        type: Type of the weights.
        block: Bytes of a block of all 16 outputs of a tile, scales included.
        above: Bytes that precede every eight blocks: the scales of a super-block.
    """

    type: TensorType
    block: int
    above: int = 0

    def nbytes(self, rows: int, columns: int) -> int:
        """Bytes of a matrix, with the last tile padded."""
        per_tile = columns // BLOCK * self.block + columns // SUPER * self.above
        return -(-rows // TILE) * per_tile


Q4_0 = TileSizes(TensorType.Q4_0, 288)
Q8_0 = TileSizes(TensorType.Q8_0, 544)
Q4_K = TileSizes(TensorType.Q4_K, 288, 64)
Q5_K = TileSizes(TensorType.Q5_K, 352, 64)
Q6_K = TileSizes(TensorType.Q6_K, 416, 32)
Q8_AFFINE = TileSizes(TensorType.Q8_AFFINE, 768)
MXFP4 = TileSizes(TensorType.MXFP4, 272)
IQ4_NL = TileSizes(TensorType.IQ4_NL, 288)
NF4 = TileSizes(TensorType.NF4, 288)
Q4_1 = TileSizes(TensorType.Q4_1, 320)
Q5_0 = TileSizes(TensorType.Q5_0, 352)
Q5_1 = TileSizes(TensorType.Q5_1, 384)
IQ4_XS = TileSizes(TensorType.IQ4_XS, 288, 32)
IQ3_S = TileSizes(TensorType.IQ3_S, 288, 32)
IQ3_XXS = TileSizes(TensorType.IQ3_XXS, 288, 32)
IQ2 = TileSizes(TensorType.IQ2, 288, 32)
IQ1 = TileSizes(TensorType.IQ1, 288, 32)


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
    "q2_k": BlockSizes(256, 84, Q8_AFFINE),
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
