"""Weights in blocks, as GGUF files hold them: kept on a CPU, made anew for other devices."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.stored import StoredFormat, StoredSpec

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.config import HeadRows, ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.quant.format import QuantSpec


def _format_of(_: Mapping[str, Any]) -> StoredFormat:
    raise ModelError("Only GGUF files hold such weights.", "Download config.json again.")


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    names = [f"{piece.name}.weight" for piece in part.pieces]
    return any(name in checkpoint.names and checkpoint.dtype(name) in BLOCK_SIZES for name in names)


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    from medusa_core.models.quant.joined import (
        joined_format,
        led,
    )

    heads = config.head_rows
    if not formats.keeps_blocks:
        return _made_anew(checkpoint, part, heads, formats)
    groups = []
    for _, pieces in groupby(part.pieces, lambda piece: checkpoint.dtype(f"{piece.name}.weight")):
        groups.append(_group(checkpoint, tuple(pieces), part.columns, heads, formats))
    if len(groups) == 1:
        return groups[0][0], groups[0][2]
    tensors: dict[str, Tensor] = {}
    for number, (_, _, of_group) in enumerate(groups):
        tensors |= led(number, of_group)
    return joined_format([(spec, rows) for spec, rows, _ in groups]), tensors


def _made_anew(
    checkpoint: Checkpoint, part: LinearSpec, heads: HeadRows, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """A part as numbers, in the format that was asked for."""
    import torch

    found = []
    for piece in part.pieces:
        shape = (piece.tensor_rows, part.columns)
        numbers = checkpoint.tensor(f"{piece.name}.weight", shape, getattr(torch, formats.compute))
        rows = piece.take(numbers)
        found.append(piece.interleaved(rows, heads))
    wanted = formats.lm_head if part.name == "lm_head" else formats.linears
    spec = part.fitting(wanted, formats)
    return spec, spec.quantize(torch.cat(found).to(formats.device))


def _group(
    checkpoint: Checkpoint,
    pieces: tuple[TensorRows, ...],
    columns: int,
    heads: HeadRows,
    formats: PartFormats,
) -> tuple[QuantSpec, int, dict[str, Tensor]]:
    """Pieces of one type as they are stored: their format, rows and tensors."""
    import torch

    from medusa_core.models.quant.choice import dense_format_of
    from medusa_core.models.quant.in_blocks import weight_formats

    found = []
    for piece in pieces:
        name = f"{piece.name}.weight"
        checkpoint.check_shape(name, (piece.tensor_rows, columns))
        rows = piece.take(checkpoint.raw(name))
        found.append(piece.interleaved(rows, heads))
    stored, count = torch.cat(found), sum(piece.rows for piece in pieces)
    kind = checkpoint.dtype(f"{pieces[0].name}.weight")
    if kind in BLOCK_SIZES:
        return weight_formats().get(kind), count, {"blocks": stored}
    spec = dense_format_of(formats.compute)
    return spec, count, spec.quantize(stored.to(getattr(torch, formats.compute)))


SPEC = StoredSpec("gguf", _format_of, _holds, _read)
