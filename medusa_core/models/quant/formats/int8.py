"""8-bit integers with a scale per row.

The compiled step quantizes inputs, too, with a scale for every 64 of a row, so that an outlier
costs only its neighbours precision; on CUDA inputs have one scale per row. torch's CPU kernel
quantizes the weights alone.
Outlier columns aren't kept in float16 (LLM.int8's threshold is 0): which columns are outliers would
depend on all rows of a step, so that siblings in a token tree would change each other's results.

Source: LLM.int8() (Dettmers et al. 2022), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from medusa_core.i18n import tr
from medusa_core.models.quant.format import Hardware, QuantSpec

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

_MAX = 127
_MULTIPLE = 32  # torch's CPU kernel reads past the end of other shapes


def _limitation(hardware: Hardware) -> str:
    """Return why the hardware can't multiply 8-bit weights; empty if it can."""
    if hardware.device == "cpu" and not (hardware.compiles or hardware.multiplies_bfloat16):
        return tr(
            "This CPU has no instructions for bfloat16, which 8-bit weights are multiplied with."
        )
    if hardware.device == "cuda" and hardware.capability < (7, 5):
        return tr("Cards before Turing have no 8-bit products.")
    return ""


def _quantize(weight: Tensor) -> dict[str, Tensor]:
    """Quantize with a symmetric scale per row. int8 [rows, columns], bfloat16 [rows]"""
    import torch

    wide = weight.float()
    # torch's CPU kernel takes bfloat16 scales. Rounded up, so that no code exceeds 127.
    exact = wide.abs().amax(dim=1, keepdim=True).clamp_(min=1e-20) / _MAX
    scale = (exact * (1 + 2**-8)).bfloat16()
    codes = torch.round(wide / scale.float()).clamp_(-_MAX, _MAX)
    return {"weight": codes.to(torch.int8), "scale": scale.squeeze(1)}


def _dequantize(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    """Dequantize to float32. [rows, columns]"""
    return tensors["weight"] * tensors["scale"].unsqueeze(1).float()


def _build(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
) -> QuantLinear:
    """Make the fastest layer: compiled, torch's CPU kernel, or bitsandbytes' CUDA kernel."""
    from medusa_core.models.quant.int8_linear import Int8Linear, int8_rows_linear
    from medusa_core.models.quant.native_linear import native_int8_linear

    native = native_int8_linear(tensors["weight"], tensors["scale"], bias)
    if native is not None:
        return native
    make = Int8Linear if tensors["weight"].device.type == "cpu" else int8_rows_linear
    return make(tensors["weight"], tensors["scale"], bias)


SPEC = QuantSpec(
    name="int8",
    label="8-bit",
    bits=8.0,
    is_dense=False,
    compiled=True,
    nbytes=lambda rows, columns, _: rows * columns + rows * 4,
    supports=lambda rows, columns, _: rows % _MULTIPLE == columns % _MULTIPLE == 0,
    limitation=_limitation,
    compute=("bfloat16", "float16"),
    tensors=lambda rows, columns, _: {
        "weight": ("int8", (rows, columns)),
        "scale": ("bfloat16", (rows,)),
    },
    quantize=_quantize,
    build=_build,
    dequantize=_dequantize,
)
