"""4-bit integers with a scale for every 32 weights: the 4-bit format for CPUs."""

from medusa_core.models.quant.block_format import block_format

SPEC = block_format("q4", "4-bit (q4)", "q4_0")
