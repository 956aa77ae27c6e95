"""Layers in the computer's memory, as the tier below a card: pinned, so that copies run aside."""

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
    """Takes layers part by part, and holds each as one piece; see `LayerSource`.

    Attributes:
        layers: What it holds, by number.
        pieces: Their bytes. uint8 [bytes]
    """

    def __init__(self) -> None:
        self.layers: dict[int, LayerEntry] = {}
        self.pieces: dict[int, Tensor] = {}
        self._layer, self._end = -1, 0
        self._parts: list[tuple[PartEntry, Sequence[TensorBytes]]] = []

    def add(self, layer: int, name: str, kind: str, tensors: Sequence[TensorBytes]) -> None:
        """Append a part; the parts of a layer come one after the other."""
        if layer != self._layer:
            self.finish()
            self._layer = layer
        places = place_tensors(tensors, self._end)
        self._parts.append((PartEntry(name, kind, places), tensors))
        self._end = max((place.offset + place.nbytes for place in places), default=self._end)

    def finish(self) -> None:
        """No part follows in the last layer."""
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

    def adopt(self, layer: int, stored: LayerFile) -> None:
        """Take a layer from a file.

        Raises:
            TierError: It can't be read.
        """
        entry = stored.layers[layer]
        piece = page_buffer(entry.nbytes, cuda.pinned)
        stored.read(layer, piece.numpy().data)
        self.layers[layer], self.pieces[layer] = entry, piece

    def read(self, layer: int, into: memoryview) -> None:
        """Copy a layer."""
        piece = self.pieces[layer]
        into[: len(piece)] = piece.numpy().data


def page_buffer(num_bytes: int, new: Callable[[int], Tensor] | None = None) -> Tensor:
    """Memory that begins where direct reads may go.

    Args:
        num_bytes: How much.
        new: Takes memory; None for any.

    Returns:
        uint8 [bytes]
    """
    whole = (new or _any_memory)(num_bytes + ROUND_BYTES)
    start = -whole.data_ptr() % ROUND_BYTES
    return whole[start : start + num_bytes]


def _any_memory(num_bytes: int) -> Tensor:
    return torch.empty(num_bytes, dtype=torch.uint8)
