"""Weights that stay numbers of the compute dtype: what the dense formats share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    TensorKind,
    any_shape,
    dense_bytes,
)

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear


def dense_format(
    name: str, label: str, bits: int, compute: str, lack: Callable[[Hardware], str]
) -> QuantSpec:
    """A format of plain numbers.

    Args:
        name: Its name.
        label: Its name for people.
        bits: Bits of a number.
        compute: The dtype of the numbers, and of what is computed with them.
        lack: What hardware lacks for it.
    """
    return QuantSpec(
        name=name,
        label=label,
        bits=bits,
        is_dense=True,
        compiled=compute in ("float32", "bfloat16"),
        nbytes=dense_bytes(bits),
        takes=any_shape,
        lack=lack,
        compute=(compute,),
        tensors=_tensors,
        quantize=_keep,
        build=_build,
        numbers=_numbers,
    )


def nothing_lacks(hardware: Hardware) -> str:
    """For formats that run everywhere."""
    return ""


def _tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
    return {"weight": (compute, (rows, columns))}


def _keep(weight: Tensor) -> dict[str, Tensor]:
    return {"weight": weight}


def _numbers(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    return tensors["weight"]


def _build(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
) -> QuantLinear:
    from medusa_core.models.quant.linear import make_linear

    return make_linear(tensors["weight"].to(compute), bias)
