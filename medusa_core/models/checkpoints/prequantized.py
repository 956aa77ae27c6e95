"""Checkpoints that bitsandbytes has quantized to 4 bits already.

On a card they stay as they are. Their blocks lie within rows, so that rows can be reordered and put
together as they are packed. The nested numbers of double quantization run across rows: where rows
move, they are unpacked to what they stand for, which changes no weight. A CPU takes the same levels
in blocks of 32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import HeadRows, ModelConfig
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import (
    QuantSpec,
    quant_registry,
)
from medusa_core.models.quant.in_blocks import weight_formats
from medusa_core.models.quant.nf4_sizes import BLOCK
from medusa_core.models.quant.nf4_tensors import (
    STATE,
    Nf4Matrix,
    assemble,
    read_matrix,
)

_STATISTICS = ("absmax", "quant_map", "nested_absmax", "nested_quant_map", STATE)


def holds_quantized(checkpoint: Checkpoint, part: LinearSpec) -> bool:
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


def read_quantized(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """A part as it was quantized, or made anew for other formats.

    Args:
        checkpoint: Holds its pieces in bitsandbytes' names.
        part: Which part.
        config: Of the model.
        formats: What was asked for.

    Returns:
        Its format, and its tensors in that.

    Raises:
        CheckpointError: A tensor is missing or of another size.
    """
    heads, pieces = config.head_rows, part.pieces
    found = [_read(checkpoint, piece, part.columns) for piece in pieces]
    matrices = [matrix for _, matrix in found]

    def joined(of: Callable[[Nf4Matrix], Tensor]) -> Tensor:
        """Rows of all pieces, in the order in which they are turned."""
        both = zip(matrices, pieces, strict=True)
        return torch.cat([_rows(of(matrix), piece, heads) for matrix, piece in both])

    kind = config.stored_type(f"{pieces[0].name}.weight")
    if formats.keeps_blocks and kind:
        return weight_formats().get(kind), {"blocks": joined(Nf4Matrix.blocks)}
    wanted = formats.lm_head if part.name == "lm_head" else formats.linears
    spec = part.fitting(formats.dense if formats.keeps_blocks else wanted, formats)
    if spec.name != config.stored.card:
        numbers = joined(Nf4Matrix.numbers).to(getattr(torch, formats.compute))
        return spec, spec.quantize(numbers.to(formats.device))
    if part.is_one_tensor:
        return spec, found[0][0]
    packed, scales = joined(lambda matrix: matrix.packed), joined(lambda matrix: matrix.scales)
    levels, dtype = matrices[0].levels, matrices[0].dtype
    plain = quant_registry().get("nf4")
    return plain, assemble(packed, scales, levels, part.columns, dtype)


def _rows(tensor: Tensor, piece: TensorRows, heads: HeadRows) -> Tensor:
    return piece.interleaved(piece.take(tensor), heads)


def _read(
    checkpoint: Checkpoint, piece: TensorRows, columns: int
) -> tuple[dict[str, Tensor], Nf4Matrix]:
    """The tensors of a piece, and what they are."""
    name = f"{piece.name}.weight"
    numbers = piece.tensor_rows * columns
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
    if not is_packed or "quant_map" not in tensors or STATE not in tensors:
        raise CheckpointError(
            f"{name} isn't quantized to nf4 in blocks of {BLOCK}.",
            "Choose the unquantized version of this model.",
        )
    return tensors, read_matrix(tensors, piece.tensor_rows, columns)
