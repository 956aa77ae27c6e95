"""Weights as whole numbers, groups of which share a scale: repacked into blocks of 32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.packing import Packing
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.in_blocks import weight_formats

if TYPE_CHECKING:
    from medusa_core.models.config import HeadRows

_BLOCK = 32
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows of weights: weight = scale × (code − zero).

    Attributes:
        codes: int16. [rows, columns]
        zeros: int16. [rows, groups]
        scales: float16. [rows, groups]
    """

    codes: Tensor
    zeros: Tensor
    scales: Tensor

    def rows(self, of: Callable[[Tensor], Tensor]) -> Grouped:
        """Some of the rows, or all in another order."""
        return Grouped(of(self.codes), of(self.zeros), of(self.scales))

    def numbers(self) -> Tensor:
        """The weights. float32 [rows, columns]"""
        rows, columns = self.codes.shape
        grouped = (self.codes.view(rows, self.scales.shape[1], -1) - self.zeros[..., None]).float()
        return grouped.mul_(self.scales.float()[..., None]).view(rows, columns)

    def blocks(self, kind: str) -> Tensor:
        """The same weights in blocks of 32.

        Args:
            kind: `q4_0`, where all zeros are 8, or `q8_0`.

        Returns:
            uint8 [rows, bytes of a row]
        """
        rows, columns = self.codes.shape
        repeats = columns // _BLOCK // self.scales.shape[1]
        scales = self.scales.half().repeat_interleave(repeats, dim=1)
        scales = scales.unsqueeze(-1).view(torch.uint8)
        codes = self.codes.view(rows, -1, _BLOCK)
        if kind == "q4_0":
            low, high = codes.to(torch.uint8).chunk(2, dim=-1)
            packed = low | high << 4
        else:
            zeros = self.zeros.repeat_interleave(repeats, dim=1).unsqueeze(-1)
            packed = (codes - zeros).to(torch.int8).view(torch.uint8)
        return torch.cat([scales, packed], dim=-1).view(rows, -1)


ReadPiece = Callable[[Checkpoint, str, Packing], Grouped]


def unpacked(words: Tensor, bits: int, order: tuple[int, ...] = ()) -> Tensor:
    """The codes in 32-bit words, the lowest bits first. int32 [..., n] → int16 [..., n · 32/bits]

    Args:
        words: Them.
        bits: Of a code.
        order: At which place of the word each of its codes stands; empty if in order.
    """
    places = order or tuple(range(_WORD_BITS // bits))
    shifts = torch.tensor([place * bits for place in places], dtype=torch.int32)
    codes = words[..., None] >> shifts & ((1 << bits) - 1)
    return codes.to(torch.int16).flatten(-2)


def holds_packed(checkpoint: Checkpoint, part: LinearSpec, ending: str) -> bool:
    """Is this part packed in the checkpoint?

    Args:
        checkpoint: The tensors.
        part: Which part.
        ending: Of the names of packed tensors.

    Raises:
        CheckpointError: Some of its pieces are and others aren't.
    """
    found = [f"{piece.name}.{ending}" in checkpoint.names for piece in part.pieces]
    if any(found) and not all(found):
        raise CheckpointError(
            f"Of {part.name} only some tensors are quantized.", "Choose another checkpoint."
        )
    return all(found)


def read_packed(
    read: ReadPiece,
    checkpoint: Checkpoint,
    part: LinearSpec,
    heads: HeadRows,
    packing: Packing | None,
    formats: PartFormats,
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """A part in the blocks that hold the same numbers, or made anew for other formats.

    Raises:
        CheckpointError: A tensor is missing, or of another size.
    """
    if packing is None:
        raise CheckpointError(
            f"{part.name} is packed, but config.json says nothing of that.",
            "Download config.json again.",
        )
    found = []
    for piece in part.pieces:
        whole = read(checkpoint, piece.name, packing)
        _check(whole, piece, part.columns, packing)
        found.append(whole.rows(piece.take).rows(partial(piece.interleaved, heads=heads)))
    if formats.keeps_blocks:
        blocks = torch.cat([one.blocks(packing.kind) for one in found])
        return weight_formats().get(packing.kind), {"blocks": blocks}
    wanted = formats.lm_head if part.name == "lm_head" else formats.linears
    spec = part.fitting(wanted, formats)
    numbers = torch.cat([one.numbers() for one in found]).to(getattr(torch, formats.compute))
    return spec, spec.quantize(numbers.to(formats.device))


def _check(found: Grouped, piece: TensorRows, columns: int, packing: Packing) -> None:
    groups = columns // packing.group if packing.group else 1
    sizes = [tuple(tensor.shape) for tensor in (found.codes, found.zeros, found.scales)]
    wanted = [
        (piece.tensor_rows, columns),
        (piece.tensor_rows, groups),
        (piece.tensor_rows, groups),
    ]
    if sizes != wanted or columns % max(_BLOCK, packing.group):
        raise CheckpointError(
            f"{piece.name} holds {list(sizes[0])} weights in {sizes[2][-1]} groups, but "
            f"config.json asks for {list(wanted[0])} in {groups}.",
            "The weights and config.json belong to different models; download both again.",
        )


def scales_of(checkpoint: Checkpoint, name: str) -> Tensor:
    """A tensor of scales, as 16-bit floats."""
    return checkpoint.floats(name, torch.float16)


def words_of(checkpoint: Checkpoint, name: str) -> Tensor:
    """A tensor of packed words.

    Raises:
        CheckpointError: It is missing, of another dtype, or no matrix.
    """
    words = checkpoint.raw(name)
    if words.dtype != torch.int32 or words.dim() != 2:
        raise CheckpointError(
            f"{name} is {list(words.shape)} of {words.dtype}, no matrix of 32-bit words.",
            "Download the file again.",
        )
    return words


def middle(codes: Tensor, scales: Tensor, bits: int) -> Grouped:
    """Codes whose zero is their middle. int16 [rows, columns], float16 [rows, groups]"""
    zeros = torch.full(scales.shape, 1 << (bits - 1), dtype=torch.int16)
    return Grouped(codes, zeros, scales)
