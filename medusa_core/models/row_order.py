"""Order of a linear layer's rows and columns: fused slices, rotated pairs, grouped heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from medusa_core.models.blocks.tensors import TensorRows
from medusa_core.models.config import HeadRows


def gather_rows(
    pieces: Sequence[TensorRows], heads: HeadRows, read: Callable[[TensorRows], Tensor]
) -> Tensor:
    """Concatenate the rows of a linear layer in the order that the engine's RoPE expects.

    Args:
        pieces: Rows of the checkpoint's tensors.
        heads: Sizes of the model's heads.
        read: Reads the whole tensor of a piece. [tensor rows, ...]
    """
    rows = [rows_of(piece, read(piece), heads) for piece in pieces]
    return rows[0].contiguous() if len(rows) == 1 else torch.cat(rows)


def rows_of(piece: TensorRows, tensor: Tensor, heads: HeadRows) -> Tensor:
    """Return the rows of a piece, rotated pairs side by side. [tensor rows, ...] → [rows, ...]

    Args:
        piece: Rows of the checkpoint's tensor.
        tensor: The whole tensor.
        heads: Sizes of the model's heads.
    """
    if piece.stride:
        num_runs = piece.total // piece.stride
        runs = tensor.view(num_runs, piece.stride, *tensor.shape[1:])
        tensor = runs[:, piece.first : piece.first + piece.rows // num_runs].flatten(0, 1)
    elif piece.total:
        tensor = tensor[piece.first : piece.first + piece.rows]
    if not piece.rotates:
        return tensor
    return interleave_rows(tensor, *((piece.head_dim,) if piece.head_dim else heads))


def interleave_rows(weight: Tensor, head_dim: int, rotary_dim: int = 0) -> Tensor:
    """Reorder projection rows from halves (0…d/2, d/2…d) to pairs (0, d/2, 1, d/2+1, …).

    Args:
        weight: Weight or bias. [heads · head_dim, ...]
        head_dim: Rows per head.
        rotary_dim: Number of rows, from the first on, that RoPE rotates; 0 for all.
    """
    if rotary_dim and rotary_dim < head_dim:
        heads = weight.view(-1, head_dim, *weight.shape[1:])
        first = interleave_rows(heads[:, :rotary_dim].flatten(0, 1), rotary_dim)
        parts = [first.view(-1, rotary_dim, *weight.shape[1:]), heads[:, rotary_dim:]]
        return torch.cat(parts, dim=1).view(weight.shape)
    halves = weight.view(-1, 2, head_dim // 2, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape)


def in_halves(heads: Tensor) -> Tensor:
    """Convert heads from interleaved pairs back to halves. [n, heads, head_dim]"""
    return heads.reshape(*heads.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)


def strided_by_group(heads: Tensor, grouped_heads: tuple[int, int]) -> Tensor:
    """Reorder consecutive groups of heads to the first head of every group, then the second, …

    Args:
        heads: [n, heads · value_dim]
        grouped_heads: Key heads and heads.
    """
    groups, count = grouped_heads
    return heads.view(len(heads), groups, count // groups, -1).transpose(1, 2).flatten(1)
