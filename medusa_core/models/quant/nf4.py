"""4-bit NormalFloat: blocks of 64 weights, each one of 16 levels times the block's absmax.

With double quantization the absmax values are quantized to 8 bits, too. bitsandbytes' kernels
multiply such weights on GPUs; for a CPU a checkpoint in nf4 is converted to blocks of type nf4_0.

Source: QLoRA (Dettmers et al. 2023), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from medusa_core.i18n import tr
from medusa_core.models.quant.block_sizes import NF4_BLOCK, NF4_NESTED_BLOCK
from medusa_core.models.quant.format import Hardware, QuantSpec, TensorKind

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

_LEVELS_BYTES = 16 * 4
_NESTED_LEVELS_BYTES = 256 * 4 + 4  # and the offset of the nested absmax


def nf4_format(name: str, label: str, is_nested: bool) -> QuantSpec:
    """Make the format, with or without double quantization."""

    def nbytes(rows: int, columns: int, device: str) -> int:
        """Return the size of a matrix with bitsandbytes' statistics."""
        blocks = rows * columns // NF4_BLOCK
        scales = blocks * 4
        if is_nested:
            scales = blocks + -(-blocks // NF4_NESTED_BLOCK) * 4 + _NESTED_LEVELS_BYTES
        return rows * columns // 2 + scales + _LEVELS_BYTES

    def tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
        """Return dtype and shape of each of bitsandbytes' tensors."""
        blocks = rows * columns // NF4_BLOCK
        found: dict[str, TensorKind] = {
            "weight": ("uint8", (rows * columns // 2, 1)),
            "absmax": ("float32", (blocks,)),
            "quant_map": ("float32", (16,)),
            "quant_state.bitsandbytes__nf4": ("uint8", (-1,)),
        }
        if is_nested:
            found |= {
                "absmax": ("uint8", (blocks,)),
                "nested_absmax": ("float32", (-(-blocks // NF4_NESTED_BLOCK),)),
                "nested_quant_map": ("float32", (256,)),
            }
        return found

    def quantize(weight: Tensor) -> dict[str, Tensor]:
        """Quantize a matrix by bitsandbytes."""
        from medusa_core.models.quant import nf4_tensors

        return nf4_tensors.quantize(weight, is_nested)

    nested_bits = 8 / NF4_BLOCK + 32 / NF4_BLOCK / NF4_NESTED_BLOCK
    return QuantSpec(
        name=name,
        label=label,
        bits=4 + (nested_bits if is_nested else 32 / NF4_BLOCK),
        is_dense=False,
        compiled=False,
        nbytes=nbytes,
        # Blocks may not cross rows: rows are fused and sliced in their packed form.
        supports=lambda _, columns, device: device != "cpu" and columns % NF4_BLOCK == 0,
        limitation=_limitation,
        compute=("bfloat16", "float16", "float32"),
        tensors=tensors,
        quantize=quantize,
        build=_build,
        dequantize=_dequantize,
    )


def _limitation(hardware: Hardware) -> str:
    """Return why the hardware can't multiply nf4 weights; empty if it can."""
    if hardware.device == "cpu":
        return tr("nf4 weights are for graphics cards: in 4 bits a CPU multiplies q4.")
    if hardware.device == "cuda" and hardware.capability < (6, 0):
        return tr("Cards before Pascal can't unpack 4-bit weights.")
    return ""


def _dequantize(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    """Dequantize a matrix. [rows, columns]"""
    from medusa_core.models.quant import nf4_tensors

    return nf4_tensors.unpack(tensors, rows, columns)


def _build(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
) -> QuantLinear:
    """Make a layer on a GPU."""
    from medusa_core.models.quant.nf4_cuda_linear import nf4_cuda_linear

    return nf4_cuda_linear(tensors, rows, bias)
