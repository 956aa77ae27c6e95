"""4-bit NormalFloat weights: blocks of 64 numbers, each a level of 16 times the block's largest.

With double quantization the blocks' largest numbers are themselves rounded to 8 bits. bitsandbytes'
kernels for cards multiply them; on a CPU a model that is stored so becomes blocks of type nf4_0.

Source: QLoRA (Dettmers et al. 2023), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from medusa_core.models.quant.format import (
    Hardware,
    QuantSpec,
    TensorKind,
)
from medusa_core.models.quant.nf4_sizes import BLOCK, NESTED_BLOCK

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear

_TABLES = (16 + 256) * 4 + 4  # levels, and the offset of the nested numbers


def nf4_format(name: str, label: str, is_nested: bool) -> QuantSpec:
    """The format, with or without double quantization."""
    return QuantSpec(
        name=name,
        label=label,
        bits=4 + 8 / BLOCK + 32 / BLOCK / NESTED_BLOCK if is_nested else 4 + 32 / BLOCK,
        is_dense=False,
        compiled=False,
        nbytes=_nested_bytes if is_nested else _plain_bytes,
        takes=_takes,
        lack=_lack,
        compute=("bfloat16", "float16", "float32"),
        tensors=_nested_tensors if is_nested else _plain_tensors,
        quantize=_quantizer(is_nested),
        build=_build,
        numbers=_numbers,
    )


def _plain_bytes(rows: int, columns: int, device: str) -> int:
    return rows * columns // 2 + rows * columns // BLOCK * 4 + 64


def _nested_bytes(rows: int, columns: int, device: str) -> int:
    blocks = rows * columns // BLOCK
    return rows * columns // 2 + blocks + -(-blocks // NESTED_BLOCK) * 4 + _TABLES


def _plain_tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
    return {
        "weight": ("uint8", (rows * columns // 2, 1)),
        "absmax": ("float32", (rows * columns // BLOCK,)),
        "quant_map": ("float32", (16,)),
        "quant_state.bitsandbytes__nf4": ("uint8", (-1,)),
    }


def _nested_tensors(rows: int, columns: int, compute: str) -> dict[str, TensorKind]:
    blocks = rows * columns // BLOCK
    return _plain_tensors(rows, columns, compute) | {
        "absmax": ("uint8", (blocks,)),
        "nested_absmax": ("float32", (-(-blocks // NESTED_BLOCK),)),
        "nested_quant_map": ("float32", (256,)),
    }


def _takes(rows: int, columns: int, device: str) -> bool:
    # Blocks may not reach from one row into the next: rows are put together by their packed bytes.
    return device != "cpu" and columns % BLOCK == 0


def _lack(hardware: Hardware) -> str:
    if hardware.device == "cpu":
        return "nf4 weights are for graphics cards: in 4 bits a CPU multiplies q4."
    if hardware.device == "cuda" and hardware.capability < (6, 0):
        return "Cards before Pascal can't unpack 4-bit weights."
    return ""


def _quantizer(is_nested: bool) -> Callable[[Tensor], dict[str, Tensor]]:
    def quantize(weight: Tensor) -> dict[str, Tensor]:
        from medusa_core.models.quant import nf4_tensors

        return nf4_tensors.quantize(weight, is_nested)

    return quantize


def _numbers(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    from medusa_core.models.quant import nf4_tensors

    return nf4_tensors.unpack(tensors, rows, columns)


def _build(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: dtype
) -> QuantLinear:
    from medusa_core.models.quant.nf4_cuda_linear import nf4_cuda_linear

    return nf4_cuda_linear(tensors, rows, bias)
