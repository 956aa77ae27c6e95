"""What a LoRA adds to a layer, laid out for the compiled step: y += B (A x)."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.system.native.lanes import LANES
from medusa_core.system.native.structs import AdapterStruct, UpStruct

_DOWN_TILE = 8  # of adapter.h


class Up(NamedTuple):
    """What brings a few numbers up to some of a layer's outputs.

    Attributes:
        matrix: B, its scale in it. [outputs, rank]
        start: The first of the numbers behind A that it reads.
        first: The first of the layer's outputs that it adds to.
    """

    matrix: Tensor
    start: int
    first: int


class NativeAdapter:
    """A of all pieces of a layer, and of each piece its B.

    Attributes:
        inner: Numbers behind A.
        nbytes: Bytes that it holds.
        tensors: A, then every B, as the library wants them.
        struct: What the library is given; it lives as long as the adapter.
    """

    def __init__(self, tensors: Sequence[Tensor], inputs: int, ups: Sequence[UpStruct]) -> None:
        """Take them.

        Args:
            tensors: A, then every B; float32 or bfloat16. [flat]
            inputs: Columns of A.
            ups: Where each B stands; their addresses are set here.
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
            inner=self.inner,
            is_half=down.dtype == torch.bfloat16,
        )

    @property
    def kind(self) -> str:
        """Names everything but the numbers."""
        places = [(up.first, up.outputs, up.start, up.rank) for up in self._ups]
        return f"{self.inner}x{self.struct.inputs} {places}"

    def again(self, tensors: Sequence[Tensor]) -> NativeAdapter:
        """An equal one of such tensors elsewhere."""
        return NativeAdapter(tensors, self.struct.inputs, list(self._ups))


def native_adapter(down: Tensor, ups: Sequence[Up]) -> NativeAdapter:
    """Lay matrices out for the library.

    Args:
        down: A of all pieces, one below the other; float32 or bfloat16, its columns a multiple of
            the lanes. [inner, inputs]
        ups: Of each piece its B.
    """
    structs = [
        UpStruct(first=first, outputs=len(matrix), start=start, rank=matrix.shape[1])
        for matrix, start, first in ups
    ]
    weights = (_up_weights(up.matrix) for up in ups)
    return NativeAdapter([_down_weights(down), *weights], down.shape[1], structs)


def _down_weights(matrix: Tensor) -> Tensor:
    """[inner, inputs] → [flat], as `Adapter` of adapter.h has it."""
    count, inputs = matrix.shape
    num_tiles, num_vectors = count // _DOWN_TILE, inputs // LANES
    vectors = matrix.reshape(count, num_vectors, LANES)
    whole = num_tiles * _DOWN_TILE
    tiles = vectors[:whole].view(num_tiles, _DOWN_TILE, num_vectors, LANES)
    return torch.cat([_in_pairs(tiles), _in_pairs(vectors[whole:].unsqueeze(0))])


def _up_weights(matrix: Tensor) -> Tensor:
    """[out, rank] → [flat], as `Up` of adapter.h has it."""
    outputs, rank = matrix.shape
    whole = outputs // LANES * LANES
    tiles = matrix[:whole].view(-1, LANES, rank).transpose(1, 2).unsqueeze(1)
    return torch.cat([_in_pairs(tiles), matrix[whole:].t().flatten()])


def _in_pairs(tiles: Tensor) -> Tensor:
    """Vectors of each row of tiles two by two. [tiles, rows, n, 16] → [flat]"""
    num, rows, count, _ = tiles.shape
    whole = count // 2 * 2
    pairs = tiles[:, :, :whole].reshape(num, rows, whole // 2, 2, LANES)
    if tiles.dtype == torch.bfloat16:
        pairs = pairs.transpose(3, 4)
    return torch.cat(
        [pairs.transpose(1, 2).flatten(1), tiles[:, :, whole:].flatten(1)], 1
    ).flatten()
