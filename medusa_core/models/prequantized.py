"""Checkpoints that bitsandbytes has quantized to 4 bits already.

Their blocks lie within rows, so that rows can be reordered and put together as they are packed. The
nested numbers of double quantization run across rows: where rows move, they are unpacked to what
they stand for, which changes no weight.
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import HeadRows
from medusa_core.models.parts import LinearPart, Piece
from medusa_core.quant.choice import PartFormats, dense_format_of
from medusa_core.quant.format import QuantSpec, quant_registry
from medusa_core.quant.nf4 import BLOCK

_STATE = "quant_state.bitsandbytes__nf4"
_STATISTICS = ("absmax", "quant_map", "nested_absmax", "nested_quant_map", _STATE)


def holds_quantized(checkpoint: Checkpoint, part: LinearPart) -> bool:
    """Is this part quantized in the checkpoint?

    Raises:
        CheckpointError: Some of its pieces are and others aren't.
    """
    found = [f"{piece.name}.weight.absmax" in checkpoint.names for piece in part.pieces]
    if any(found) and not all(found):
        raise CheckpointError(
            f"Of {part.name} only some tensors are quantized.", "Choose another checkpoint."
        )
    return all(found)


def fused_tensors(
    checkpoint: Checkpoint, part: LinearPart, heads: HeadRows, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """A part as it was quantized.

    Args:
        checkpoint: Holds its pieces in bitsandbytes' names.
        part: Which part.
        heads: Rows of a head, for pieces that turn.
        formats: Tells the device.

    Returns:
        Its format, and its tensors in that.

    Raises:
        CheckpointError: A tensor is missing or of another size.
    """
    from medusa_core.quant import nf4_linear

    pieces = [_read(checkpoint, piece, part.columns) for piece in part.pieces]
    shape, dtype = (part.rows, part.columns), pieces[0].dtype
    spec = quant_registry().get("nf4")
    if not spec.takes(*shape, formats.device):
        dense = torch.cat([_dense(piece, heads) for piece in pieces])
        return dense_format_of(formats.compute), {"weight": dense}
    if len(pieces) == 1 and not pieces[0].piece.turns:
        return quant_registry().get("nf4-dq" if pieces[0].is_nested else "nf4"), pieces[0].tensors
    packed = torch.cat([piece.rows(piece.packed, heads) for piece in pieces])
    largest = torch.cat([piece.rows(piece.largest, heads) for piece in pieces])
    return spec, nf4_linear.assemble(packed.view(-1), largest.view(-1), shape, dtype, False)


class _Quantized:
    """One quantized tensor.

    Attributes:
        piece: What it is.
        columns: Numbers of a row.
        tensors: As bitsandbytes keeps it.
        dtype: What it was.
        is_nested: Its blocks' largest numbers are rounded too.
    """

    def __init__(self, piece: Piece, columns: int, tensors: dict[str, Tensor]) -> None:
        from medusa_core.quant import nf4_linear

        self.piece = piece
        self.columns = columns
        self.tensors = tensors
        self.is_nested = "nested_absmax" in tensors
        statistics = {key: tensor for key, tensor in tensors.items() if key != "weight"}
        self._state = nf4_linear.read_state(statistics, piece.rows, columns, torch.device("cpu"))
        self.dtype = self._state.dtype

    @property
    def packed(self) -> Tensor:
        return self.tensors["weight"]

    @property
    def largest(self) -> Tensor:
        from medusa_core.quant import nf4_linear

        return nf4_linear.plain_largest(self._state)

    def rows(self, flat: Tensor, heads: HeadRows) -> Tensor:
        """A flat tensor as rows, in the order in which they are turned."""
        from medusa_core.models.rope import interleave_rows

        rows = flat.reshape(self.piece.rows, -1)
        return interleave_rows(rows, *heads) if self.piece.turns else rows


def _dense(quantized: _Quantized, heads: HeadRows) -> Tensor:
    from medusa_core.quant import nf4_linear

    piece = quantized.piece
    numbers = nf4_linear.unpack(quantized.tensors, piece.rows, quantized.columns)
    return quantized.rows(numbers.view(-1), heads)


def _read(checkpoint: Checkpoint, piece: Piece, columns: int) -> _Quantized:
    name = f"{piece.name}.weight"
    numbers = piece.rows * columns
    tensors = {"weight": checkpoint.raw(name)}
    for key in _STATISTICS:
        if f"{name}.{key}" in checkpoint.names:
            tensors[key] = checkpoint.raw(f"{name}.{key}")
    sizes = {"weight": numbers // 2, "absmax": numbers // BLOCK}
    for key, size in sizes.items():
        if columns % BLOCK or key not in tensors or tensors[key].numel() != size:
            raise CheckpointError(
                f"{name} is quantized to another size than config.json asks for.",
                "The weights and config.json belong to different models; download both again.",
            )
    is_packed = tensors["weight"].dtype == torch.uint8
    if not is_packed or "quant_map" not in tensors or _STATE not in tensors:
        raise CheckpointError(
            f"{name} isn't quantized to nf4 in blocks of {BLOCK}.",
            "Choose the unquantized version of this model.",
        )
    return _Quantized(piece, columns, tensors)
