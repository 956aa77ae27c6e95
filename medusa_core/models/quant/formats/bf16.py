"""bfloat16, the dtype in which most models are published."""

from medusa_core.i18n import tr
from medusa_core.models.quant.dense import dense_format
from medusa_core.models.quant.format import Hardware


def _limitation(hardware: Hardware) -> str:
    """Return why bfloat16 is slow on the hardware; empty if it isn't."""
    if hardware.device == "cuda" and hardware.capability < (8, 0):
        return tr("This card computes bfloat16 slowly; fp16 or fp32 has the same effect.")
    if hardware.device == "cpu" and "bfloat16" not in hardware.packs:
        return tr("This CPU has no instructions for bfloat16; fp32 is faster.")
    return ""


SPEC = dense_format("bf16", 16, "bfloat16", _limitation)
