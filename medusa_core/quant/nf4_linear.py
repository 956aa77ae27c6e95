"""Layers of 4-bit weights, on bitsandbytes' kernels."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.quant.bitsandbytes_quietly import bitsandbytes
from medusa_core.quant.laid import Laid, bias_of, with_bias
from medusa_core.quant.nf4 import BLOCK, NESTED_BLOCK

_kernels = bitsandbytes.functional
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
# What it raises for statistics that are none; a lack of memory is another matter.
_DAMAGES = (
    *(ValueError, KeyError, TypeError, AttributeError, AssertionError),
    *(OverflowError, RecursionError),
)
_ROWS_AT_ONCE = 1024
_CHUNK = 1 << 18  # numbers whose steps of rounding stay in a core's own cache


def quantize(weight: Tensor, is_nested: bool) -> dict[str, Tensor]:
    """Round a matrix.

    Args:
        weight: [rows, columns], any float dtype; columns a multiple of 64.
        is_nested: Round the blocks' largest numbers too.

    Returns:
        Tensors under the names that bitsandbytes gives them.
    """
    if weight.device.type == "cpu":
        packed, largest = _round_on_cpu(weight)
        return assemble(packed, largest, tuple(weight.shape), weight.dtype, is_nested)
    packed, state = _kernels.quantize_4bit(
        weight.contiguous(), blocksize=BLOCK, compress_statistics=is_nested, quant_type="nf4"
    )
    return {"weight": packed, **state.as_dict(packed=True)}


def assemble(
    packed: Tensor, largest: Tensor, shape: tuple[int, ...], dtype: torch.dtype, is_nested: bool
) -> dict[str, Tensor]:
    """Tensors of a matrix whose blocks are rounded already.

    Args:
        packed: Two levels a byte, row by row. uint8
        largest: The largest number of every block. float32
        shape: Shape of the matrix.
        dtype: What it was before.
        is_nested: Round the largest numbers too.
    """
    state = _kernels.QuantState(
        absmax=largest,
        shape=torch.Size(shape),
        code=_levels(packed.device),
        blocksize=BLOCK,
        quant_type="nf4",
        dtype=dtype,
    )
    if is_nested:
        offset = largest.mean()
        rounded, nested = _kernels.quantize_blockwise(largest - offset, blocksize=256)
        state.absmax, state.offset, state.state2, state.nested = rounded, offset, nested, True
    return {"weight": packed.view(-1, 1), **state.as_dict(packed=True)}


def read_state(
    statistics: Mapping[str, Tensor], rows: int, columns: int, device: torch.device
) -> Any:
    """What bitsandbytes knows of a matrix, checked, because its kernels don't check.

    Args:
        statistics: The matrix' tensors without the weight.
        rows: Its rows.
        columns: Its columns.
        device: Where the kernels run.

    Raises:
        CheckpointError: They don't fit each other, or a matrix of this shape.
    """
    try:
        state = _kernels.QuantState.from_dict(dict(statistics), device=device)
    except _DAMAGES as error:
        raise CheckpointError(
            f"The statistics of a quantized tensor are damaged ({error}).", "Download it again."
        ) from error
    if state.blocksize != BLOCK or state.quant_type != "nf4":
        raise CheckpointError(
            f"A tensor is quantized to {state.quant_type} in blocks of {state.blocksize}.",
            f"Only nf4 in blocks of {BLOCK} is supported.",
        )
    if not _fits(state, rows, columns):
        raise CheckpointError(
            f"The statistics of a quantized tensor don't fit {rows} rows of {columns} numbers.",
            "Download it again.",
        )
    return state


def _fits(state: Any, rows: int, columns: int) -> bool:
    blocks = rows * columns // BLOCK
    fits = (
        tuple(state.shape or ()) == (rows, columns)
        and (state.dtype in _FLOATS)
        and _is(state.absmax, torch.uint8 if state.nested else torch.float32, blocks)
        and _is(state.code, torch.float32, 16)
    )
    if not fits or not state.nested:
        return fits
    return (
        state.state2.blocksize == NESTED_BLOCK
        and state.state2.dtype == torch.float32
        and _is(state.state2.absmax, torch.float32, -(-blocks // NESTED_BLOCK))
        and _is(state.state2.code, torch.float32, 256)
    )


def _is(tensor: Tensor, dtype: torch.dtype, numbers: int) -> bool:
    return tensor.dtype == dtype and tensor.numel() == numbers


def plain_largest(state: Any) -> Tensor:
    """The largest numbers of a matrix' blocks, nested or not. float32"""
    if not state.nested:
        return cast("Tensor", state.absmax)
    unpacked: Tensor = _kernels.dequantize_blockwise(state.absmax, state.state2)
    plain: Tensor = unpacked + state.offset
    return plain


def unpack(tensors: Mapping[str, Tensor], rows: int, columns: int) -> Tensor:
    """A matrix of so many rows and columns as numbers again."""
    statistics = {key: tensor for key, tensor in tensors.items() if key != "weight"}
    state = read_state(statistics, rows, columns, tensors["weight"].device)
    numbers: Tensor = _kernels.dequantize_4bit(tensors["weight"], state)
    return numbers


def _levels(device: torch.device) -> Tensor:
    levels: Tensor = _kernels.get_4bit_type("nf4", device=device)
    return levels


def _round_on_cpu(weight: Tensor) -> tuple[Tensor, Tensor]:
    """As bitsandbytes rounds, in half of its time."""
    levels = _levels(weight.device)
    borders = (levels[1:] + levels[:-1]) / 2
    packed = torch.empty(weight.numel() // 2, dtype=torch.uint8)
    largest = torch.empty(weight.numel() // BLOCK)
    numbers = weight.reshape(-1)
    for start in range(0, len(numbers), _CHUNK):
        blocks = numbers[start : start + _CHUNK].float().view(-1, BLOCK)
        tops = blocks.abs().amax(dim=1)
        # A block of zeros: any scale will do.
        shares = blocks / torch.where(tops > 0, tops, 1.0).unsqueeze(1)
        nearest = torch.bucketize(shares, borders, out_int32=True).view(-1, 2)
        pairs = (nearest[:, 0] << 4).bitwise_or_(nearest[:, 1])
        packed[start // 2 : start // 2 + len(pairs)] = pairs
        largest[start // BLOCK : start // BLOCK + len(tops)] = tops
    return packed, largest


def _reorder(weight: Any, rows: int) -> None:
    """Reorder a weight for the CPU's kernel, as its first use would, a few rows at a time.

    All at once takes six bytes for every number of the matrix.
    """
    state = weight.quant_state
    packed, columns = weight.data.view(rows, -1), state.shape[1]
    largest = plain_largest(state).view(rows, -1)
    parts, scales = [], []
    for start in range(0, rows, _ROWS_AT_ONCE):
        some = slice(start, min(start + _ROWS_AT_ONCE, rows))
        part_state = _kernels.QuantState(
            absmax=largest[some].reshape(-1),
            shape=torch.Size((some.stop - some.start, columns)),
            code=state.code,
            blocksize=BLOCK,
            quant_type="nf4",
            dtype=state.dtype,
        )
        part, part_state = _kernels._convert_weight_packed_for_cpu(packed[some], part_state)
        parts.append(part)
        scales.append(part_state.absmax)
    weight.data = torch.cat(parts)
    part_state.absmax = torch.cat(scales, dim=1)
    part_state.shape = state.shape
    weight.quant_state = part_state


class Nf4Linear:
    """4-bit weights; inputs stay as they are."""

    def __init__(
        self, weight: Any, shape: tuple[int, int], bias: Tensor | None, compute: torch.dtype
    ) -> None:
        """Take a weight of bitsandbytes.

        Args:
            weight: `Params4bit`, in the order that the device's kernel wants.
            shape: Its rows and columns.
            bias: [rows], or None.
            compute: The dtype to multiply in.
        """
        rows, columns = shape
        layer = bitsandbytes.nn.Linear4bit(
            columns, rows, bias=False, compute_dtype=compute, quant_type="nf4", device="meta"
        )
        layer.weight = weight
        self._layer = layer.eval()
        self._shape = shape
        self._bias = bias
        self._compute = compute

    @property
    def is_reordered(self) -> bool:
        """Does this CPU's kernel want weights in an order of its own?"""
        return bool(self._layer.support_avx512bf16_for_cpu)

    @property
    def nbytes(self) -> int:
        weight = self._layer.weight
        state = weight.quant_state
        held = [weight.data, state.absmax, state.code]
        if state.nested:
            held += [state.offset, state.state2.absmax, state.state2.code]
        bias = 0 if self._bias is None else self._bias.nbytes
        return sum(int(tensor.nbytes) for tensor in held) + bias

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = self._layer(x)
        return product if self._bias is None else product.add_(self._bias)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def laid(self) -> Laid:
        weight = self._layer.weight
        state = copy.copy(weight.quant_state)
        held = [weight.data, state.absmax]
        state.absmax = None
        if state.nested:
            held += [state.offset, state.state2.absmax]
            state.offset, state.state2 = None, copy.copy(state.state2)
            state.state2.absmax = None
        again = partial(_again, state, len(held), self._shape, self._compute)
        return Laid(f"nf4 {self._shape}", with_bias(held, self._bias), again)


def nf4_linear(
    tensors: Mapping[str, Tensor], rows: int, bias: Tensor | None, compute: torch.dtype
) -> Nf4Linear:
    """A layer of a matrix as `quantize` gives it.

    Args:
        tensors: By name.
        rows: Rows of the matrix.
        bias: [rows], or None.
        compute: The dtype to multiply in.
    """
    statistics = {name: tensor for name, tensor in tensors.items() if name != "weight"}
    packed = tensors["weight"]
    columns = packed.numel() * 2 // rows
    read_state(statistics, rows, columns, packed.device)
    weight = bitsandbytes.nn.Params4bit.from_prequantized(
        packed, statistics, requires_grad=False, device=packed.device
    )
    layer = Nf4Linear(weight, (rows, columns), bias, compute)
    if packed.device.type == "cpu" and layer.is_reordered:
        _reorder(weight, rows)
    return layer


def _again(
    state: Any,
    count: int,
    shape: tuple[int, int],
    compute: torch.dtype,
    tensors: Sequence[Tensor],
) -> Nf4Linear:
    """A layer over the tensors of `Nf4Linear.laid`."""
    state = copy.copy(state)
    packed, state.absmax, *nested = tensors[:count]
    if nested:
        state.offset, state.state2 = nested[0], copy.copy(state.state2)
        state.state2.absmax = nested[1]
    weight = bitsandbytes.nn.Params4bit(
        packed, requires_grad=False, quant_state=state, quant_type="nf4", bnb_quantized=True
    )
    return Nf4Linear(weight, shape, bias_of(tensors, count), compute)
