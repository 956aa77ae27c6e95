"""4-bit whole numbers with a scale for each 32: the 4-bit form for CPUs."""

from medusa_core.models.quant.in_blocks import block_format

SPEC = block_format("q4", "4-bit (q4)", "q4_0")
