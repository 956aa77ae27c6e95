"""Numbers that Python and the compiled step share; `generate.py` writes them to `src/abi.h`.

Nothing here needs torch.
"""

from __future__ import annotations

from enum import IntEnum

from medusa_core.messages import NUM_ALTERNATIVES as NUM_ALTERNATIVES

LANES = 16  # float32 of a vector; the compiler splits it into the CPU's registers
PANEL = 32  # outputs of a panel of weights
TILE = 16  # outputs of a tile of block-quantized weights
BLOCK = 32  # inputs of a block
SUPER = 256  # inputs of a super-block
DOWN_TILE = 8  # rows of a LoRA's A that are interleaved
MAX_KERNEL_SIZE = 64  # taps of a short convolution
MAX_DRAFT_STEPS = 64  # rows of a pass whose states may be rolled back
MAX_TOP_K = 64  # best columns of a row
MAX_CONTEXT = 8  # tokens of a phrase table's longest context
MAX_TREE_NODES = 1024
MAX_LEVELS = 32  # levels of a tree
MAX_CANDIDATES = 1024  # different tokens after one path
MAX_SOURCES = 31  # each is a bit of an int32
MAX_OFFERS = 128  # candidates that a trace records in a step
MIN_OFFER_VALUE = 0.01  # expected tokens of a recorded candidate
RATIO_DEPTHS = 4  # deeper nodes share the last depth's acceptance ratio
# Upper ends of the ranges of probabilities that have a ratio each; the last range has none.
RATIO_RANGES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)

# Version of the layouts of weights in linear.h, blocks.h and adapter.h. Raise it when one of them
# changes: files of offloaded layers hold weights in these layouts.
WEIGHTS_LAYOUT = 16


class TensorType(IntEnum):
    """Types of weights: floats, int8 with a scale per output, and the blocks of blocks.h."""

    F32 = 0
    BF16 = 1
    I8 = 2
    Q4_0 = 3
    Q8_0 = 4
    Q4_K = 5
    Q5_K = 6
    Q6_K = 7
    Q8_AFFINE = 8
    MXFP4 = 9
    IQ4_NL = 10
    NF4 = 11
    Q4_1 = 12
    Q5_0 = 13
    Q5_1 = 14
    IQ4_XS = 15
    IQ3_S = 16
    IQ3_XXS = 17
    IQ2 = 18
    IQ1 = 19


class ActivationCode(IntEnum):
    """Codes of the activations in `models/blocks/spec.py`, by the same names."""

    SILU = 0
    GELU_TANH = 1
    CLAMPED_SWIGLU = 2
    RELU2 = 3
    GELU = 4


class ScoringCode(IntEnum):
    """Codes of the router scorings in `models/blocks/spec.py`, by the same names."""

    SOFTMAX = 0
    TOPK_SOFTMAX = 1
    SIGMOID = 2


class NodeRank(IntEnum):
    """Rank of a tree node among its siblings."""

    GREEDY = 0  # most probable, and so are all of its ancestors
    FIRST = 1  # most probable, after an ancestor that isn't
    SECOND = 2
    LOWER = 3


ENUMS: tuple[type[IntEnum], ...] = (TensorType, ActivationCode, ScoringCode, NodeRank)


def shared() -> list[tuple[str, int | float | tuple[float, ...]]]:
    """Return the constants of this module that aren't enumerations, with their values."""
    return [
        (name, value)
        for name, value in globals().items()
        if name.isupper() and (isinstance(value, int | float) or value is RATIO_RANGES)
    ]


def fits_lanes(*sizes: int) -> bool:
    """Whether sizes are multiples of the vector width of the compiled step."""
    return all(size % LANES == 0 for size in sizes)
