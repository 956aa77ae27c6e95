"""float64, for tests whose results must not depend on rounding."""

from medusa_core.models.quant.dense import dense_format

SPEC = dense_format("fp64", 64, "float64")
