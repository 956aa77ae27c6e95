"""float32, twice the size of the dtype in which most models are trained."""

from medusa_core.models.quant.dense import dense_format

SPEC = dense_format("fp32", 32, "float32")
