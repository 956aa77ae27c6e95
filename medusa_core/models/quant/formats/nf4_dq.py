"""4-bit NormalFloat with 8-bit scales: the smallest."""

from medusa_core.models.quant.nf4 import nf4_format

SPEC = nf4_format("nf4-dq", "4-bit (nf4, double-quantized)", is_nested=True)
