"""Block-quantized weights of GGUF files: unchanged on a CPU, requantized for other devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NoReturn

from medusa_core.errors import ModelError
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.stored import StoredSpec

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.config import HeadRows, ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.stored import Quantized


def _parse(_: Mapping[str, Any]) -> NoReturn:
    """Refuse: GGUF files have no `quantization_config`."""
    raise ModelError("Only GGUF files hold such weights.", "Download config.json again.")


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    """Whether a tensor of a linear layer is block-quantized."""
    names = [f"{piece.name}.weight" for piece in part.pieces]
    return any(name in checkpoint.names and checkpoint.dtype(name) in BLOCK_SIZES for name in names)


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> Quantized:
    """Read a linear layer: unchanged, joined from two block types, or requantized."""
    import torch

    from medusa_core.models.checkpoints.grouped import requantize
    from medusa_core.models.quant.block_format import weight_formats
    from medusa_core.models.quant.joined_format import join_tensors, joined_format
    from medusa_core.models.row_order import gather_rows

    heads, compute = config.head_rows, getattr(torch, formats.compute)

    def read_numbers(piece: TensorRows) -> Tensor:
        """Read a whole tensor dequantized."""
        shape = (piece.tensor_rows, part.columns)
        return checkpoint.tensor(f"{piece.name}.weight", shape, compute)

    def read_stored(piece: TensorRows) -> Tensor:
        """Read a whole tensor as stored blocks."""
        checkpoint.check_shape(f"{piece.name}.weight", (piece.tensor_rows, part.columns))
        return checkpoint.raw(f"{piece.name}.weight")

    if not formats.keeps_blocks:
        return requantize(part, gather_rows(part.pieces, heads, read_numbers), formats)
    # The pieces of a fused layer may have different types, as in files of mixed quality.
    specs, rows, tensors = [], [], []
    for kind, group in groupby(part.pieces, lambda one: checkpoint.dtype(f"{one.name}.weight")):
        pieces = tuple(group)
        is_block = kind in BLOCK_SIZES
        stored = _blocks(checkpoint, pieces, part.columns, heads) if is_block else None
        if stored is None:
            stored = gather_rows(pieces, heads, read_stored)
        spec = weight_formats().get(kind) if is_block else formats.dense
        specs.append(spec)
        rows.append(sum(piece.rows for piece in pieces))
        tensors.append({"blocks": stored} if is_block else spec.quantize(stored.to(compute)))
    if len(specs) == 1:
        return specs[0], tensors[0]
    return joined_format(list(zip(specs, rows, strict=True))), join_tensors(tensors)


def _blocks(
    checkpoint: Checkpoint, pieces: Sequence[TensorRows], columns: int, heads: HeadRows
) -> Tensor | None:
    """Read rows of blocks in the order of `gather_rows`; None if that takes more than reading rows.

    The order of a GGUF file is often the engine's: then nothing is copied.
    """
    import torch

    from medusa_core.models.row_order import gather_rows

    for piece in pieces:
        checkpoint.check_shape(f"{piece.name}.weight", (piece.tensor_rows, columns))
    rows = checkpoint.block_rows(list(dict.fromkeys(f"{piece.name}.weight" for piece in pieces)))
    if rows is None:
        return None
    order = gather_rows(pieces, heads, lambda piece: rows.order[f"{piece.name}.weight"])
    is_stored_order = torch.equal(order, torch.arange(len(rows.stored)))
    return rows.stored if is_stored_order else rows.stored.index_select(0, order)


SPEC = StoredSpec("gguf", _parse, _holds, _read)
