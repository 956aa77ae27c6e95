"""Weight formats whose weights are in GGUF's blocks: those of files, and q4."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.format import Hardware, QuantSpec, quant_registry
from medusa_core.system.native.constants import SUPER, TILE
from medusa_core.system.native.cuda import BLOCK_TYPES
from medusa_core.system.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

_ROUNDED = ("q4_0", "q8_0")


def block_format(name: str, label: str, kind: str, can_quantize: bool = True) -> QuantSpec:
    """Make a weight format of blocks.

    Args:
        name: Name of the format.
        label: Name in the window.
        kind: Block type, a key of `BLOCK_SIZES`.
        can_quantize: Whether `block_rounding` can make such blocks.
    """
    sizes = BLOCK_SIZES[kind]
    on_cards = name in BLOCK_TYPES

    def nbytes(rows: int, columns: int, device: str) -> int:
        """Return the size of a matrix: a GPU keeps stored rows, the compiled step pads to tiles."""
        if device == "cuda":
            return rows * sizes.row_bytes(columns)
        return sizes.tiles.nbytes(rows, columns)

    def limitation(hardware: Hardware) -> str:
        """Return why the hardware can't multiply these blocks, as a sentence; empty if it can."""
        if hardware.device == "cuda" and name not in hardware.block_types:
            return tr("Cards multiply nf4: weights in blocks of 32 are for the CPU.")
        if hardware.device == "cpu" and not hardware.compiles:
            return tr("There is no compiled step for this CPU, which multiplies such weights.")
        return ""

    def quantize(weight: Tensor) -> dict[str, Tensor]:
        """Quantize a matrix [rows, columns]; IQ and K types are only read from files."""
        if not can_quantize:
            raise RequestError(
                tr("Weights of type {0} are read from files, not made.", name.upper()),
                "Choose q4 or int8.",
            )
        from medusa_core.models.quant.block_rounding import round_to

        return {"blocks": round_to(name, weight)}

    def build(
        tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
    ) -> QuantLinear:
        """Make a linear layer of quantized tensors."""
        from medusa_core.models.quant.block_linear import make_block_linear

        return make_block_linear(kind, tensors["blocks"], bias, compute)

    def dequantize(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
        """Dequantize to float32. [rows, columns]"""
        from medusa_core.models.quant.block_types import block_type

        return block_type(kind).dequantize(tensors["blocks"])

    return QuantSpec(
        name=name,
        label=label,
        bits=sizes.tiles.nbytes(TILE, SUPER) * 8 / (TILE * SUPER),
        is_dense=False,
        compiled=True,
        nbytes=nbytes,
        supports=lambda _, columns, device: (
            (device == "cpu" or on_cards) and columns % sizes.weights == 0
        ),
        limitation=limitation,
        compute=("bfloat16", "float32", *(("float16",) if on_cards else ())),
        tensors=lambda rows, columns, _: {"blocks": ("uint8", (rows, sizes.row_bytes(columns)))},
        quantize=quantize,
        build=build,
        dequantize=dequantize,
        can_quantize=can_quantize,
    )


@cache
def weight_formats() -> Registry[QuantSpec]:
    """Return all weight formats, including the block types of files."""
    stored = (block_format(kind, kind.upper(), kind, kind in _ROUNDED) for kind in BLOCK_SIZES)
    return quant_registry().with_others(stored)
