"""nf4 matrices in the tensors that bitsandbytes writes and multiplies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.quant.block_sizes import NF4_BLOCK, NF4_NESTED_BLOCK
from medusa_core.system.native.constants import BLOCK

STATE = "quant_state.bitsandbytes__nf4"
_FLOATS = ("float32", "float16", "bfloat16", "float64")
_NESTED_LEVELS = 256
_LEVEL_SCALE = 124  # factor of the levels of nf4_0


@dataclass(frozen=True, slots=True)
class Nested:
    """Double quantization: absmax = levels[code] × absmax of 256 blocks + offset.

    Attributes:
        absmax: float32 [blocks / 256]
        levels: float32 [256]
        offset: float32 scalar
    """

    absmax: Tensor
    levels: Tensor
    offset: Tensor


@dataclass(frozen=True, slots=True)
class Nf4Matrix:
    """An nf4 matrix whose tensors are known to fit each other.

    Attributes:
        packed: Codes, two per byte, the first in the high bits. uint8 [rows, columns / 2]
        absmax: Scale of each block; with `nested` a code. float32 or uint8 [rows · columns / 64]
        levels: float32 [16]
        nested: How `absmax` is dequantized, or None.
        dtype: Dtype of the unquantized matrix.
    """

    packed: Tensor
    absmax: Tensor
    levels: Tensor
    nested: Nested | None
    dtype: torch.dtype

    @property
    def scales(self) -> Tensor:
        """Scales of all blocks. float32 [rows, columns / 64]"""
        if self.nested is None:
            return self.absmax.view(len(self.packed), -1)
        nested = self.nested
        absmax = nested.absmax.repeat_interleave(NF4_NESTED_BLOCK)[: len(self.absmax)]
        scales = nested.levels[self.absmax.int()] * absmax + nested.offset
        return scales.view(len(self.packed), -1)

    @property
    def codes(self) -> Tensor:
        """Unpacked indices into the levels. uint8 [rows, columns]"""
        return torch.stack([self.packed >> 4, self.packed & 15], dim=-1).flatten(1)

    def numbers(self) -> Tensor:
        """Dequantize to the original dtype. [rows, columns]"""
        blocks = self.levels[self.codes.int()].view(len(self.packed), -1, NF4_BLOCK)
        return (blocks * self.scales[..., None]).flatten(1).to(self.dtype)

    def blocks(self) -> Tensor:
        """Convert to blocks of type nf4_0. uint8 [rows, bytes of a row]"""
        rows = len(self.packed)
        scales = (self.scales / _LEVEL_SCALE).half().repeat_interleave(NF4_BLOCK // BLOCK, dim=1)
        low, high = self.codes.view(rows, -1, BLOCK).chunk(2, dim=-1)
        return torch.cat([scales[..., None].view(torch.uint8), low | high << 4], dim=-1).flatten(1)


def read_matrix(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Nf4Matrix:
    """Check the tensors of a matrix, because the kernels don't.

    Args:
        tensors: By bitsandbytes' names, the packed weights as `weight`.
        rows: Rows that the matrix must have.
        columns: Columns that it must have.

    Raises:
        CheckpointError: The tensors don't fit each other, or a matrix of this shape.
    """
    state = _state(tensors.get(STATE))
    if state.get("blocksize") != NF4_BLOCK or state.get("quant_type") != "nf4":
        raise CheckpointError(
            tr(
                "A tensor is quantized to {0} in blocks of {1}.",
                state.get("quant_type"),
                state.get("blocksize"),
            ),
            tr("Only nf4 in blocks of {0} is supported.", NF4_BLOCK),
        )
    is_nested = "nested_absmax" in tensors
    blocks = rows * columns // NF4_BLOCK
    fits = (
        state.get("shape") == [rows, columns]
        and columns % NF4_BLOCK == 0
        and state.get("dtype") in _FLOATS
        and _is(tensors.get("weight"), torch.uint8, rows * columns // 2)
        and _is(tensors.get("absmax"), torch.uint8 if is_nested else torch.float32, blocks)
        and _is(tensors.get("quant_map"), torch.float32, 16)
        and (not is_nested or _nested_fits(tensors, state, blocks))
    )
    if not fits:
        raise CheckpointError(
            tr(
                "The statistics of a quantized tensor don't fit {0} rows of {1} numbers.",
                rows,
                columns,
            ),
            "Download it again.",
        )
    packed = tensors["weight"].reshape(rows, -1)
    nested = None
    if is_nested:
        offset = torch.tensor(state["nested_offset"], device=packed.device)
        nested = Nested(tensors["nested_absmax"], tensors["nested_quant_map"], offset)
    dtype: torch.dtype = getattr(torch, state["dtype"])
    return Nf4Matrix(packed, tensors["absmax"].view(-1), tensors["quant_map"], nested, dtype)


def _state(packed: Tensor | None) -> dict[str, Any]:
    """Parse bitsandbytes' metadata, which is JSON in a tensor of bytes."""
    try:
        state = json.loads(bytes([] if packed is None else packed.flatten().tolist()))
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(
            tr("The statistics of a quantized tensor are damaged ({0}).", error),
            "Download it again.",
        ) from error
    return state if isinstance(state, dict) else {}


def _nested_fits(tensors: Mapping[str, Tensor], state: Mapping[str, Any], blocks: int) -> bool:
    """Whether the statistics of double quantization have the sizes that the kernels read."""
    return (
        state.get("nested_blocksize") == NF4_NESTED_BLOCK
        and state.get("nested_dtype") == "float32"
        and isinstance(state.get("nested_offset"), float)
        and _is(tensors.get("nested_absmax"), torch.float32, -(-blocks // NF4_NESTED_BLOCK))
        and _is(tensors.get("nested_quant_map"), torch.float32, _NESTED_LEVELS)
    )


def _is(tensor: Tensor | None, dtype: torch.dtype, numbers: int) -> bool:
    """Whether a tensor has this dtype and number of elements."""
    return tensor is not None and tensor.dtype == dtype and tensor.numel() == numbers


def assemble(
    packed: Tensor, scales: Tensor, levels: Tensor, columns: int, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Make bitsandbytes' tensors of a matrix that is quantized already.

    Args:
        packed: As in `Nf4Matrix`. uint8 [rows, columns / 2]
        scales: float32 [rows, columns / 64]
        levels: float32 [16]
        columns: Columns of the matrix.
        dtype: Dtype of the unquantized matrix.
    """
    name = str(dtype).removeprefix("torch.")
    shape = [len(packed), columns]
    state = {"quant_type": "nf4", "blocksize": NF4_BLOCK, "dtype": name, "shape": shape}
    encoded = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
    return {
        "weight": packed.reshape(-1, 1),
        "absmax": scales.reshape(-1),
        "quant_map": levels,
        STATE: encoded,
    }


def quantize(weight: Tensor, is_nested: bool) -> dict[str, Tensor]:
    """Quantize a matrix.

    Args:
        weight: [rows, columns], any float dtype; columns a multiple of 64.
        is_nested: Whether to quantize the scales, too (double quantization).

    Returns:
        Tensors by bitsandbytes' names.
    """
    from medusa_core.models.quant.quiet_bitsandbytes import bitsandbytes

    packed, state = bitsandbytes.functional.quantize_4bit(
        weight.contiguous(), blocksize=NF4_BLOCK, compress_statistics=is_nested, quant_type="nf4"
    )
    return {"weight": packed, **state.as_dict(packed=True)}


def unpack(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    """Dequantize a matrix, on a GPU by bitsandbytes' kernel. [rows, columns]

    Raises:
        CheckpointError: The tensors don't fit each other, or this shape.
    """
    matrix = read_matrix(tensors, rows, columns)
    device = matrix.packed.device
    if device.type == "cpu":
        return matrix.numbers()
    from medusa_core.models.quant.quiet_bitsandbytes import bitsandbytes

    kernels = bitsandbytes.functional
    statistics = {key: tensor for key, tensor in tensors.items() if key != "weight"}
    state = kernels.QuantState.from_dict(statistics, device=device)
    numbers: Tensor = kernels.dequantize_4bit(tensors["weight"], state)
    return numbers
