"""4-bit NormalFloat with 32-bit scales, to which fused 4-bit checkpoints are converted."""

from medusa_core.models.quant.nf4 import nf4_format

SPEC = nf4_format("nf4", "4-bit (nf4)", is_nested=False)
