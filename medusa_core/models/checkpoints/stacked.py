"""Checkpoints with all experts of a layer in one tensor, read as one tensor per expert.

In GPT-OSS gate and up rows are interleaved; weights are unquantized and transposed, or MXFP4
(blocks of 32 and their scales in two tensors). In Granite 4, Qwen3.5 and Gemma 4 gate rows precede
up rows.

Source: transformers' `GptOssExperts` and its reader of MXFP4, and `GraniteMoeHybridExperts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.checkpoint import (
    DTYPES,
    Checkpoint,
    EachPiece,
    missing_tensor,
    read_bytes,
)
from medusa_core.models.quant.block_types import block_type
from medusa_core.system.files.safetensors_header import TensorEntry

_STACKED = re.compile(
    r"(?P<lead>.*\.(?:mlp|layers\.\d+)\.experts)\."
    r"(?P<part>gate_up|down)_proj(?P<kind>_bias|_blocks|_scales)?"
)
_GRANITE = re.compile(
    r"(?P<lead>.*\.block_sparse_moe)\.(?P<part>input|output)_linear(?P<kind>\.weight)"
)
_ROUTER = ".mlp.router."  # only in GPT-OSS
_KIND = "mxfp4"
_ENDINGS = {"_bias": "bias"}
_DIMENSIONS = {"_bias": 2, "_blocks": 4}
_BLOCK = 32
_MAX_EXPERTS = 1 << 12


class _Place(NamedTuple):
    """Position of an expert's tensor.

    Attributes:
        stored: Name of the tensor with all experts.
        expert: Index of the expert.
        first: First row of the expert's tensor.
        step: Distance of its rows: 2 if gate and up are interleaved.
        num_parts: Number of tensors that share the rows.
        is_blocks: Whether it is MXFP4.
        is_transposed: Whether its columns are the rows.
    """

    stored: str
    expert: int
    first: int
    step: int
    num_parts: int
    is_blocks: bool = False
    is_transposed: bool = False


def is_stacked(names: frozenset[str]) -> bool:
    """Whether some tensors contain all experts of a layer."""
    return any(_found(name) for name in names)


def _found(name: str) -> re.Match[str] | None:
    """Match the name of a tensor with all experts of a layer; None for other tensors."""
    return _STACKED.fullmatch(name) or _GRANITE.fullmatch(name)


class StackedCheckpoint(Checkpoint):
    """Reads the tensors of a folder, with one tensor per expert."""

    def __init__(self, files: dict[str, Path]) -> None:
        """Open the files.

        Raises:
            CheckpointError: A tensor of experts has an impossible shape.
        """
        super().__init__(files)
        self._places: dict[str, _Place] = {}
        self._is_interleaved = any(_ROUTER in name for name in self.names)
        stacked = {name: found for name in self.names if (found := _found(name))}
        for name, found in stacked.items():
            self._places |= dict(self._experts(name, found))
        self.names = (self.names - stacked.keys()) | self._places.keys()

    def _experts(self, name: str, match: re.Match[str]) -> Iterator[tuple[str, _Place]]:
        """Yield name and position of each expert's tensor in a tensor with all experts."""
        lead, part, kind = match["lead"], match["part"], match["kind"] or ""
        if kind == "_scales":  # read with the blocks
            return
        shape = self._entry(name).shape
        if len(shape) != _DIMENSIONS.get(kind, 3) or not 0 < shape[0] <= _MAX_EXPERTS:
            raise CheckpointError(
                tr("{0} has shape {1}, which isn't one for each expert.", name, list(shape)),
                "Download the file again.",
            )
        parts = ("gate", "up") if part in ("gate_up", "input") else ("down",)
        count = len(parts)
        for expert in range(shape[0]):
            for number, one in enumerate(parts):
                if kind == ".weight" or not (kind or self._is_interleaved):
                    first = shape[1] // count * number
                    place = _Place(name, expert, first, 1, count)
                    experts = f"{lead.removesuffix('.experts')}.experts"
                    yield f"{experts}.{expert}.{one}_proj.weight", place
                    continue
                is_blocks, is_plain = kind == "_blocks", not kind
                place = _Place(name, expert, number, count, count, is_blocks, is_plain)
                yield f"{lead}.{expert}.{one}_proj.{_ENDINGS.get(kind, 'weight')}", place

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor; an expert's is a slice of the stored one."""
        place = self._places.get(name)
        if place is None:
            return super().shape(name)
        _, *shape = self._entry(place.stored).shape
        outputs = shape[1 if place.is_transposed else 0] // place.num_parts
        if len(shape) == 1:
            return (outputs,)
        if place.is_blocks:
            return (outputs, shape[1] * _BLOCK)
        return (outputs, shape[0 if place.is_transposed else 1])

    def dtype(self, name: str) -> str:
        """Return the name of a tensor's dtype, or `mxfp4`."""
        place = self._places.get(name)
        if place is None:
            return super().dtype(name)
        return _KIND if place.is_blocks else super().dtype(place.stored)

    def floats(self, name: str, dtype: torch.dtype | None) -> Tensor:
        """Read a floating-point tensor; MXFP4 is dequantized."""
        place = self._places.get(name)
        if place is None or not place.is_blocks:
            return super().floats(name, dtype)
        numbers = block_type(_KIND).dequantize(self.raw(name))
        return numbers if dtype is None else numbers.to(dtype)

    def _raw(self, name: str, each_piece: EachPiece) -> Tensor:
        """Read a tensor, or only the bytes of one expert, in its stored dtype."""
        place = self._places.get(name)
        if place is None:
            return super()._raw(name, each_piece)
        self._read.add(name)
        stored = self._slice(place.stored, place.expert, each_piece)
        if place.is_blocks:
            scales = place.stored.removesuffix("_blocks") + "_scales"
            return self._blocks(stored, self._slice(scales, place.expert, each_piece), place)
        outputs = stored.t() if place.is_transposed else stored
        count = len(outputs) // place.num_parts
        return outputs[place.first :: place.step][:count].contiguous()

    def _blocks(self, codes: Tensor, scales: Tensor, place: _Place) -> Tensor:
        """Convert to GGUF's MXFP4: an exponent, then 16 low and 16 high nibbles.

        Args:
            codes: Pairs of neighbours, the first in the low bits. uint8 [outputs, blocks, 16]
            scales: uint8 [outputs, blocks]
            place: Position of the expert's rows.
        """
        if codes.dim() != 3 or codes.shape[2] != _BLOCK // 2 or scales.shape != codes.shape[:2]:
            raise CheckpointError(
                tr("{0} is damaged: its blocks and scales don't fit each other.", place.stored),
                "Download the file again.",
            )
        codes, scales = codes[place.first :: place.step], scales[place.first :: place.step]
        single = torch.stack([codes & 15, codes >> 4], dim=-1).flatten(-2)
        low, high = single.chunk(2, dim=-1)
        return torch.cat([scales.unsqueeze(-1), low | high << 4], dim=-1).flatten(1)

    def _slice(self, stored: str, expert: int, each_piece: EachPiece) -> Tensor:
        """Read one expert's part of a tensor with all experts."""
        if stored not in self._file_of:
            raise missing_tensor(stored)
        entry = self._entry(stored)
        count, *shape = entry.shape
        dtype = DTYPES.get(entry.dtype)
        if dtype is None or expert >= count:
            raise CheckpointError(tr("{0} is damaged.", stored), "Download the file again.")
        nbytes = entry.nbytes // count
        one = TensorEntry(entry.dtype, tuple(shape), entry.start + expert * nbytes, nbytes)
        return read_bytes(self._file_of[stored], one, each_piece).view(dtype).view(one.shape)
