"""What a LoRA adds to a layer, laid out for the compiled step: y += B (A x)."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.system.native.lanes import LANES
from medusa_core.system.native.structs import AdapterStruct, UpStruct


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
        tensors: A, then every B as `up_weights` lays it out.
        struct: What the library is given; it lives as long as the adapter.
    """

    def __init__(self, down: Tensor, weights: Sequence[Tensor], ups: Sequence[UpStruct]) -> None:
        """Take them.

        Args:
            down: A of all pieces, one below the other; float32 or bfloat16. [inner, inputs]
            weights: Every B, of the same dtype. [flat]
            ups: Where each stands; their addresses are set here.
        """
        self.tensors = (down, *weights)
        self.inner = len(down)
        self.nbytes = sum(tensor.nbytes for tensor in self.tensors)
        self._ups = (UpStruct * len(ups))(*ups)
        for up, weight in zip(self._ups, weights, strict=True):
            up.weight = weight.data_ptr()
        self.struct = AdapterStruct(
            down=down.data_ptr(),
            ups=addressof(self._ups),
            num_ups=len(ups),
            inputs=down.shape[1],
            inner=self.inner,
            is_half=down.dtype == torch.bfloat16,
        )

    @property
    def kind(self) -> str:
        """Names everything but the numbers."""
        places = [(up.first, up.outputs, up.start, up.rank) for up in self._ups]
        return f"{self.inner}x{self.tensors[0].shape[1]} {places}"

    def again(self, tensors: Sequence[Tensor]) -> NativeAdapter:
        """An equal one of such tensors elsewhere."""
        return NativeAdapter(tensors[0], tensors[1:], list(self._ups))


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
    return NativeAdapter(down.contiguous(), [up_weights(up.matrix) for up in ups], structs)


def up_weights(matrix: Tensor) -> Tensor:
    """Tiles of 16 outputs one after the other, as `Up` of adapter.h has it. [out, rank] → [flat]"""
    outputs, rank = matrix.shape
    whole = outputs // LANES * LANES
    tiles = matrix[:whole].view(-1, LANES, rank).transpose(1, 2)
    return torch.cat([tiles.flatten(), matrix[whole:].t().flatten()])
