"""Offloaded layers in main memory, pinned so that copies to a GPU run asynchronously."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from medusa_core.runtime.offload.layer_entries import (
    ROUND_BYTES,
    LayerEntry,
    PartEntry,
    TensorBytes,
    place_tensors,
    rounded_up,
)
from medusa_core.runtime.offload.layer_file import LayerFile
from medusa_core.system import cuda


class MemoryLayers:
    """Collects layers and keeps each as one piece; a `LayerSource`.

    Attributes:
        layers: Entries by layer index.
        pieces: Content of each layer. uint8 [bytes]
    """

    def __init__(self) -> None:
        self.layers: dict[int, LayerEntry] = {}
        self.pieces: dict[int, Tensor] = {}
        self._layer, self._end = -1, 0
        self._parts: list[tuple[PartEntry, Sequence[TensorBytes]]] = []

    def add(self, layer: int, name: str, kind: str, tensors: Sequence[TensorBytes]) -> None:
        """Append a linear layer; those of a decoder layer must be consecutive."""
        if layer != self._layer:
            self.finish()
            self._layer = layer
        places = place_tensors(tensors, self._end)
        self._parts.append((PartEntry(name, kind, places), tensors))
        self._end = max((place.offset + place.nbytes for place in places), default=self._end)

    def finish(self) -> None:
        """Complete the last layer."""
        if not self._parts:
            return
        piece = cuda.pinned(rounded_up(self._end))
        for entry, tensors in self._parts:
            for place, tensor in zip(entry.tensors, tensors, strict=True):
                content = torch.frombuffer(tensor.content, dtype=torch.uint8)
                piece[place.offset : place.offset + place.nbytes].copy_(content)
        parts = tuple(entry for entry, _ in self._parts)
        self.layers[self._layer] = LayerEntry(0, len(piece), 0, parts)
        self.pieces[self._layer] = piece
        self._parts, self._end = [], 0

    def load(self, layer: int, stored: LayerFile) -> None:
        """Read a layer from a file.

        Raises:
            TierError: It can't be read.
        """
        entry = stored.layers[layer]
        piece = page_buffer(entry.nbytes, cuda.pinned)
        stored.read(layer, piece.numpy().data)
        self.layers[layer], self.pieces[layer] = entry, piece

    def read(self, layer: int, into: memoryview) -> None:
        """Copy a layer into a buffer."""
        piece = self.pieces[layer]
        into[: len(piece)] = piece.numpy().data


def page_buffer(num_bytes: int, new: Callable[[int], Tensor] | None = None) -> Tensor:
    """Allocate page-aligned memory, for reads with O_DIRECT.

    Args:
        num_bytes: Size in bytes.
        new: Allocator, such as `cuda.pinned`; None for pageable memory.

    Returns:
        uint8 [bytes]
    """
    whole = (new or _pageable)(num_bytes + ROUND_BYTES)
    start = -whole.data_ptr() % ROUND_BYTES
    return whole[start : start + num_bytes]


def _pageable(num_bytes: int) -> Tensor:
    """Allocate ordinary memory."""
    return torch.empty(num_bytes, dtype=torch.uint8)
