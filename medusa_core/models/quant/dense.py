"""Unquantized weight formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from medusa_core.models.quant.format import Hardware, QuantSpec

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear


def dense_format(
    name: str, bits: int, compute: str, limitation: Callable[[Hardware], str] = lambda _: ""
) -> QuantSpec:
    """Make the weight format of a dtype.

    Args:
        name: Name of the format.
        bits: Bits of a number.
        compute: Name of the dtype, in which products are computed, too.
        limitation: As in `QuantSpec`.
    """
    return QuantSpec(
        name=name,
        label=f"{bits}-bit" if bits > 16 else f"{bits}-bit ({compute})",
        bits=bits,
        is_dense=True,
        compiled=compute in ("float32", "bfloat16"),
        nbytes=lambda rows, columns, _: rows * columns * bits // 8,
        supports=lambda *_: True,
        limitation=limitation,
        compute=(compute,),
        tensors=lambda rows, columns, compute: {"weight": (compute, (rows, columns))},
        quantize=lambda weight: {"weight": weight},
        build=_build,
        dequantize=lambda tensors, *_: tensors["weight"],
    )


def _build(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
) -> QuantLinear:
    """Make a linear layer of unquantized weights."""
    from medusa_core.models.quant.linear import make_linear

    return make_linear(tensors["weight"].to(compute), bias)
