"""32-bit numbers: exact, and twice the size of what models are trained in."""

from medusa_core.models.quant.dense import (
    dense_format,
    nothing_lacks,
)

SPEC = dense_format("fp32", "32-bit", 32, "float32", nothing_lacks)
