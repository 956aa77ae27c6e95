"""8-bit whole numbers with a scale per row.

Where a CPU's step is compiled the inputs are rounded too, each 64 of a row by their own largest
number, so that one large number costs its neighbours alone their precision; on CUDA each row by its
own. Torch's operations on a CPU round the weights alone.
No outlier columns are set apart (LLM.int8's threshold is 0): which ones are would depend on all
rows of a step, and so siblings in a tree would change each other.

Source: LLM.int8() (Dettmers et al. 2022), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    TensorKind,
)

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

_LARGEST = 127
_MULTIPLE = 32  # the CPU's kernel reads past the end of other shapes


def _nbytes(rows: int, columns: int, device: str) -> int:
    return rows * columns + rows * 4


def _takes(rows: int, columns: int, device: str) -> bool:
    return rows % _MULTIPLE == 0 and columns % _MULTIPLE == 0


def _lack(hardware: Hardware) -> str:
    if hardware.device == "cpu" and not (hardware.compiles or hardware.multiplies_bfloat16):
        return "This CPU has no instructions for bfloat16, which 8-bit weights are multiplied with."
    if hardware.device == "cuda" and hardware.capability < (7, 5):
        return "Cards before Turing have no 8-bit products."
    return ""


def _tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
    return {"weight": ("int8", (rows, columns)), "scale": ("bfloat16", (rows,))}


def _quantize(weight: Tensor) -> dict[str, Tensor]:
    import torch

    wide = weight.float()
    # A scale of 8 bits, rounded up, so that the CPU's kernel can take it as it is.
    exact = wide.abs().amax(dim=1, keepdim=True).clamp_(min=1e-20) / _LARGEST
    scale = (exact * (1 + 2**-8)).bfloat16()
    rounded = torch.round(wide / scale.float()).clamp_(-_LARGEST, _LARGEST)
    return {"weight": rounded.to(torch.int8), "scale": scale.squeeze(1)}


def _numbers(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    return tensors["weight"] * tensors["scale"].unsqueeze(1).float()


def _build(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
) -> QuantLinear:
    from medusa_core.models.quant.int8_linear import (
        Int8Linear,
        int8_rows_linear,
    )
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
    nbytes=_nbytes,
    takes=_takes,
    lack=_lack,
    compute=("bfloat16", "float16"),
    tensors=_tensors,
    quantize=_quantize,
    build=_build,
    numbers=_numbers,
)
