"""float16, for GPUs without fast bfloat16."""

from medusa_core.i18n import tr
from medusa_core.models.quant.dense import dense_format
from medusa_core.models.quant.format import Hardware


def _limitation(hardware: Hardware) -> str:
    """Return why float16 is slow on the hardware; empty if it isn't."""
    if hardware.device == "cpu":
        return tr("CPUs compute float16 slowly; bf16 has the same size.")
    if hardware.capability < (7, 0):
        return tr("Cards before Turing compute float16 at a 64th of their speed.")
    return ""


SPEC = dense_format("fp16", 16, "float16", _limitation)
