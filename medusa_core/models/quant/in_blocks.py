"""Weight formats in blocks of few bits: those of files, and what is made of dense models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from medusa_core.errors import RequestError
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    TensorKind,
    quant_registry,
)
from medusa_core.system.native.cuda import BLOCK_TYPES
from medusa_core.system.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

_ROUNDED = ("q4_0", "q8_0")


def block_format(name: str, label: str, of: str, rounds: bool = True) -> QuantSpec:
    """A format whose weights lie in blocks.

    Args:
        name: Its name.
        label: Its name for people.
        of: The type of its blocks, a key of `BLOCK_SIZES`.
        rounds: `block_rounding` makes such blocks of numbers; else they come from files alone.
    """
    sizes = BLOCK_SIZES[of]

    on_cards = name in BLOCK_TYPES

    def nbytes(rows: int, columns: int, device: str) -> int:
        if device == "cuda":
            return rows * sizes.row_bytes(columns)
        return sizes.tiles.nbytes(rows, columns)

    def takes(rows: int, columns: int, device: str) -> bool:
        return (device == "cpu" or on_cards) and columns % sizes.weights == 0

    def lack(hardware: Hardware) -> str:
        if hardware.device == "cuda" and name not in hardware.block_types:
            return "Cards multiply nf4: weights in blocks of 32 are for the CPU."
        if hardware.device == "cpu" and not hardware.compiles:
            return "There is no compiled step for this CPU, which multiplies such weights."
        return ""

    def tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
        return {"blocks": ("uint8", (rows, sizes.row_bytes(columns)))}

    def make(weight: Tensor) -> dict[str, Tensor]:
        if not rounds:
            raise RequestError(
                f"Weights of type {name.upper()} are read from files, not made.",
                "Choose q4 or int8.",
            )
        from medusa_core.models.quant.block_rounding import round_to

        return {"blocks": round_to(name, weight)}

    def build(
        tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
    ) -> QuantLinear:
        from medusa_core.models.quant.block_linear import make_block_linear

        return make_block_linear(of, tensors["blocks"], bias, compute)

    def numbers(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
        from medusa_core.models.quant.block_types import block_type

        return block_type(of).dequantize(tensors["blocks"])

    return QuantSpec(
        name=name,
        label=label,
        bits=sizes.tiles.nbytes(16, 256) * 8 / (16 * 256),
        is_dense=False,
        compiled=True,
        nbytes=nbytes,
        takes=takes,
        lack=lack,
        compute=("bfloat16", "float32", *(("float16",) if on_cards else ())),
        tensors=tensors,
        quantize=make,
        build=build,
        numbers=numbers,
        is_made=rounds,
    )


@cache
def weight_formats() -> Registry[QuantSpec]:
    """All weight formats, those of files among them."""
    stored = (block_format(of, of.upper(), of, of in _ROUNDED) for of in BLOCK_SIZES)
    return quant_registry().with_others(stored)
