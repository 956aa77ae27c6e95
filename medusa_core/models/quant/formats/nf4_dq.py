"""4-bit NormalFloat with 8-bit scales (double quantization): the smallest format for GPUs."""

from medusa_core.models.quant.nf4 import nf4_format

SPEC = nf4_format("nf4-dq", "4-bit (nf4, double-quantized)", is_nested=True)
