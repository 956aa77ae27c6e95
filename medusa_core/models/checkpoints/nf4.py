"""Read the linear layers of bitsandbytes' 4-bit checkpoints.

A GPU uses them unchanged. Blocks don't cross rows, so packed rows can be reordered and
concatenated. The nested scales of double quantization do cross rows: if rows are moved, scales are
dequantized to float32, which changes no weight. For a CPU weights are converted to blocks of 32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.block_sizes import NF4_BLOCK
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec, quant_registry
from medusa_core.models.quant.nf4_tensors import STATE, Nf4Matrix, assemble, read_matrix
from medusa_core.models.row_order import gather_rows

_STATISTICS = ("absmax", "quant_map", "nested_absmax", "nested_quant_map", STATE)


def read_nf4(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """Read a linear layer: unchanged, as blocks, or requantized, whichever the formats demand.

    Args:
        checkpoint: The checkpoint, with bitsandbytes' names.
        config: Configuration of the model.
        formats: Weight formats to load into.

    Returns:
        Its weight format, and its tensors in that.

    Raises:
        CheckpointError: A tensor is missing or of another size.
    """
    found = {piece.name: _read(checkpoint, piece, part.columns) for piece in part.pieces}

    def rows(of: Callable[[Nf4Matrix], Tensor]) -> Tensor:
        """Concatenate one statistic of the layer's pieces in the engine's row order."""
        return gather_rows(part.pieces, config.head_rows, lambda piece: of(found[piece.name][1]))

    kind = config.stored_type(f"{part.pieces[0].name}.weight")
    if formats.keeps_blocks and kind:
        return weight_formats().get(kind), {"blocks": rows(Nf4Matrix.blocks)}
    wanted = formats.lm_head if part.name == "lm_head" else formats.linears
    spec = formats.fitting_linear(part, formats.dense if formats.keeps_blocks else wanted)
    if spec.name != config.stored.card:
        numbers = rows(Nf4Matrix.numbers).to(getattr(torch, formats.compute))
        return spec, spec.quantize(numbers.to(formats.device))
    tensors, matrix = found[part.pieces[0].name]
    if part.is_one_tensor:
        return spec, tensors
    packed, scales = rows(lambda matrix: matrix.packed), rows(lambda matrix: matrix.scales)
    assembled = assemble(packed, scales, matrix.levels, part.columns, matrix.dtype)
    return quant_registry().get("nf4"), assembled


def _read(
    checkpoint: Checkpoint, piece: TensorRows, columns: int
) -> tuple[dict[str, Tensor], Nf4Matrix]:
    """Read the tensors of a piece, and check that they are a matrix of its size."""
    name = f"{piece.name}.weight"
    numbers = piece.tensor_rows * columns
    tensors = {"weight": checkpoint.raw(name)}
    for key in _STATISTICS:
        if f"{name}.{key}" in checkpoint.names:
            tensors[key] = checkpoint.raw(f"{name}.{key}")
    sizes = {"weight": numbers // 2, "absmax": numbers // NF4_BLOCK}
    for key, size in sizes.items():
        if columns % NF4_BLOCK or key not in tensors or tensors[key].numel() != size:
            raise CheckpointError(
                tr("{0} is quantized to another size than config.json asks for.", name),
                "The weights and config.json belong to different models; download both again.",
            )
    is_packed = tensors["weight"].dtype == torch.uint8
    if not is_packed or "quant_map" not in tensors or STATE not in tensors:
        raise CheckpointError(
            tr("{0} isn't quantized to nf4 in blocks of {1}.", name, NF4_BLOCK),
            "Choose the unquantized version of this model.",
        )
    return tensors, read_matrix(tensors, piece.tensor_rows, columns)
