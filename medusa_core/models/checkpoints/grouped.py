"""Read weights that are integers with a scale per group, and convert them to blocks of 32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.packing import Packing
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.row_order import gather_rows
from medusa_core.system.native.constants import BLOCK

_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Grouped:
    """A matrix as integers: weight = scale × (code − zero point).

    Attributes:
        codes: int16. [rows, columns]
        zeros: Zero points, int16. [rows, groups]
        scales: float16. [rows, groups]
    """

    codes: Tensor
    zeros: Tensor
    scales: Tensor

    @classmethod
    def symmetric(cls, codes: Tensor, scales: Tensor, bits: int) -> Grouped:
        """Make a matrix whose zero points are the middle of the codes."""
        return cls(codes, torch.full(scales.shape, 1 << (bits - 1), dtype=torch.int16), scales)

    def numbers(self) -> Tensor:
        """Dequantize to float32. [rows, columns]"""
        rows, columns = self.codes.shape
        grouped = (self.codes.view(rows, self.scales.shape[1], -1) - self.zeros[..., None]).float()
        return grouped.mul_(self.scales.float()[..., None]).view(rows, columns)

    def blocks(self, kind: str) -> Tensor:
        """Convert to blocks of 32, exactly.

        Args:
            kind: `q4_0`, for which all zero points must be 8, or `q8_0`.

        Returns:
            uint8 [rows, bytes of a row]
        """
        rows, columns = self.codes.shape
        repeats = columns // BLOCK // self.scales.shape[1]
        scales = self.scales.half().repeat_interleave(repeats, dim=1)
        scales = scales.unsqueeze(-1).view(torch.uint8)
        codes = self.codes.view(rows, -1, BLOCK)
        if kind == "q4_0":
            low, high = codes.to(torch.uint8).chunk(2, dim=-1)
            packed = low | high << 4
        else:
            zeros = self.zeros.repeat_interleave(repeats, dim=1).unsqueeze(-1)
            packed = (codes - zeros).to(torch.int8).view(torch.uint8)
        return torch.cat([scales, packed], dim=-1).view(rows, -1)


def unpack(words: Tensor, bits: int, order: tuple[int, ...] = ()) -> Tensor:
    """Unpack the codes of 32-bit words. int32 [..., n] → int16 [..., n · 32/bits]

    Args:
        words: Packed words.
        bits: Bits of a code.
        order: Position within the word of each of its codes; empty for the lowest bits first.
    """
    places = order or tuple(range(_WORD_BITS // bits))
    shifts = torch.tensor([place * bits for place in places], dtype=torch.int32)
    codes = words[..., None] >> shifts & ((1 << bits) - 1)
    return codes.to(torch.int16).flatten(-2)


def read_scales(checkpoint: Checkpoint, name: str) -> Tensor:
    """Read a tensor of scales in float16."""
    return checkpoint.floats(name, torch.float16)


def read_words(checkpoint: Checkpoint, name: str) -> Tensor:
    """Read a matrix of packed 32-bit words.

    Raises:
        CheckpointError: It is missing, of another dtype, or no matrix.
    """
    words = checkpoint.raw(name)
    if words.dtype != torch.int32 or words.dim() != 2:
        raise CheckpointError(
            tr(
                "{0} is {1} of {2}, no matrix of 32-bit words.",
                name,
                list(words.shape),
                words.dtype,
            ),
            "Download the file again.",
        )
    return words


def read_grouped(
    read_tensor: Callable[[Checkpoint, str, Packing], Grouped],
    checkpoint: Checkpoint,
    part: LinearSpec,
    config: ModelConfig,
    formats: PartFormats,
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """Read a linear layer: as blocks if formats keep them, else requantized.

    Raises:
        CheckpointError: A tensor is missing, or of another size.
    """
    packing = config.packing
    if packing is None:
        raise CheckpointError(
            tr("{0} is packed, but config.json says nothing of that.", part.name),
            "Download config.json again.",
        )

    def read(piece: TensorRows) -> Grouped:
        """Read a whole tensor of the checkpoint and check its sizes."""
        weights = read_tensor(checkpoint, piece.name, packing)
        _check(weights, piece, part.columns, packing)
        return weights

    heads, kind = config.head_rows, packing.kind
    if formats.keeps_blocks:
        blocks = gather_rows(part.pieces, heads, lambda piece: read(piece).blocks(kind))
        return weight_formats().get(kind), {"blocks": blocks}
    numbers = gather_rows(part.pieces, heads, lambda piece: read(piece).numbers())
    return requantize(part, numbers, formats)


def requantize(
    part: LinearSpec, numbers: Tensor, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    """Quantize dequantized weights to the wanted format. [rows, columns]"""
    wanted = formats.lm_head if part.name == "lm_head" else formats.linears
    spec = formats.fitting_linear(part, wanted)
    numbers = numbers.to(getattr(torch, formats.compute))
    return spec, spec.quantize(numbers.to(formats.device))


def _check(weights: Grouped, piece: TensorRows, columns: int, packing: Packing) -> None:
    """Compare the sizes of codes, zero points and scales with those of the model."""
    groups = columns // packing.group if packing.group else 1
    sizes = [tuple(tensor.shape) for tensor in (weights.codes, weights.zeros, weights.scales)]
    rows = piece.tensor_rows
    wanted = [(rows, columns), (rows, groups), (rows, groups)]
    if sizes != wanted or columns % max(BLOCK, packing.group):
        raise CheckpointError(
            tr(
                "{0} holds {1} weights in {2} groups, but config.json asks for {3} in {4}.",
                piece.name,
                list(sizes[0]),
                sizes[2][-1],
                list(wanted[0]),
                groups,
            ),
            "The weights and config.json belong to different models; download both again.",
        )
