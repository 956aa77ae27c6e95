"""The matrices of a LoRA in the layout of the compiled step: y += B (A x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.system.native.constants import DOWN_TILE, LANES
from medusa_core.system.native.structs import AdapterStruct, UpStruct


class Up(NamedTuple):
    """B of one piece of a layer.

    Attributes:
        matrix: B, scaled. [outputs, rank]
        start: The first output of A that it reads.
        first: The first of the layer's outputs that it adds to.
    """

    matrix: Tensor
    start: int
    first: int


class NativeAdapter:
    """A of all pieces of a layer, and B of each.

    Attributes:
        inner: Number of A's outputs.
        nbytes: Bytes of the matrices.
        tensors: A, then every B, in the library's layout.
        struct: C structure; it lives as long as the adapter.
    """

    def __init__(self, tensors: Sequence[Tensor], inputs: int, ups: Sequence[UpStruct]) -> None:
        """Describe matrices to the library.

        Args:
            tensors: A, then every B; float32 or bfloat16. [flat]
            inputs: Columns of A.
            ups: Place of each B; their addresses are set here.
        """
        down, *weights = tensors
        self.tensors = (down, *weights)
        self.inner = down.numel() // inputs
        self.nbytes = sum(tensor.nbytes for tensor in self.tensors)
        self._ups = (UpStruct * len(ups))(*ups)
        for up, weight in zip(self._ups, weights, strict=True):
            up.weight = weight.data_ptr()
        self.struct = AdapterStruct(
            down=down.data_ptr(),
            ups=addressof(self._ups),
            num_ups=len(ups),
            inputs=inputs,
            rank=self.inner,
            is_bf16=down.dtype == torch.bfloat16,
        )

    @property
    def kind(self) -> str:
        """Everything but the numbers, as in `LinearLayout.kind`."""
        places = [(up.first_output, up.outputs, up.rank_start, up.rank) for up in self._ups]
        return f"{self.inner}x{self.struct.inputs} {places}"

    def recipe(self) -> Callable[[Sequence[Tensor]], NativeAdapter]:
        """Return a function that builds an equal adapter from copies of `tensors`."""
        inputs, ups = self.struct.inputs, list(self._ups)
        return lambda tensors: NativeAdapter(tensors, inputs, ups)


def native_adapter(down: Tensor, ups: Sequence[Up]) -> NativeAdapter:
    """Bring matrices into the library's layout.

    Args:
        down: A of all pieces, concatenated; float32 or bfloat16, its columns a multiple of `LANES`.
            [inner, inputs]
        ups: B of each piece.
    """
    structs = [
        UpStruct(first_output=first, outputs=len(matrix), rank_start=start, rank=matrix.shape[1])
        for matrix, start, first in ups
    ]
    weights = (_up_weights(up.matrix) for up in ups)
    return NativeAdapter([_down_weights(down), *weights], down.shape[1], structs)


def _down_weights(matrix: Tensor) -> Tensor:
    """Interleave A for the compiled step: `Adapter` in adapter.h. [inner, inputs] → [flat]"""
    count, inputs = matrix.shape
    num_tiles, num_vectors = count // DOWN_TILE, inputs // LANES
    vectors = matrix.reshape(count, num_vectors, LANES)
    whole = num_tiles * DOWN_TILE
    tiles = vectors[:whole].view(num_tiles, DOWN_TILE, num_vectors, LANES)
    return torch.cat([_interleaved(tiles), _interleaved(vectors[whole:].unsqueeze(0))])


def _up_weights(matrix: Tensor) -> Tensor:
    """Interleave B for the compiled step: `Up` in adapter.h. [out, rank] → [flat]"""
    outputs, rank = matrix.shape
    whole = outputs // LANES * LANES
    tiles = matrix[:whole].view(-1, LANES, rank).transpose(1, 2).unsqueeze(1)
    return torch.cat([_interleaved(tiles), matrix[whole:].t().flatten()])


def _interleaved(tiles: Tensor) -> Tensor:
    """Pair the vectors of each row of a tile. [tiles, rows, n, 16] → [flat]"""
    num, rows, count, _ = tiles.shape
    whole = count // 2 * 2
    pairs = tiles[:, :, :whole].reshape(num, rows, whole // 2, 2, LANES)
    if tiles.dtype == torch.bfloat16:
        pairs = pairs.transpose(3, 4)
    parts = [pairs.transpose(1, 2).flatten(1), tiles[:, :, whole:].flatten(1)]
    return torch.cat(parts, 1).flatten()
