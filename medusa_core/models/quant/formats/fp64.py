"""64-bit numbers: for checks, where rounding must not decide."""

from medusa_core.models.quant.dense import (
    dense_format,
    nothing_lacks,
)

SPEC = dense_format("fp64", "64-bit", 64, "float64", nothing_lacks)
