"""Layers that lie below the compute device: their linear parts come when they are needed.

While a decoder is read, the linear parts of such layers go to a store one by one, so that they are
never all in memory, and stand-ins take their places. Everything else of the decoder stays: token
vectors, norms, the projection to the vocabulary. A runner puts the parts in the stand-ins' places
while it computes their layer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.errors import TierError
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.decoder import Decoder
from medusa_core.models.quant.layout import (
    Again,
    LinearLayout,
    QuantLinear,
)
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import Weights
from medusa_core.runtime.offload.layer_entries import (
    LayerEntry,
    PartEntry,
    Signature,
    TensorBytes,
    TensorPlace,
)
from medusa_core.runtime.offload.layer_file import (
    LayerFile,
    LayerFileWriter,
)
from medusa_core.runtime.offload.memory import (
    MemoryLayers,
    page_buffer,
)


class LayerSource(Protocol):
    """Layers that are stored, to be read by one thread.

    Attributes:
        layers: What it holds, by number.
    """

    @property
    def layers(self) -> Mapping[int, LayerEntry]: ...

    def read(self, layer: int, into: memoryview) -> None:
        """Bring a layer; see `LayerFile.read`."""


class OffloadedLinear:
    """Stands for a linear part that lies below; see `QuantLinear`.

    Attributes:
        nbytes: Bytes that it holds on the device: none.
        layers: All that lies below.
        now: The part while it is here, else None.
    """

    nbytes = 0

    def __init__(self, layers: OffloadedLayers) -> None:
        self.layers = layers
        self.now: QuantLinear | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return self._here()(x)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self._here().plus(x, residual)

    def layout(self) -> LinearLayout:
        return self._here().layout()

    def _here(self) -> QuantLinear:
        assert self.now is not None  # a runner computes layer by layer
        return self.now


class OffloadedLayers:
    """The linear parts that lie below, and how they are made of what is brought.

    Attributes:
        linears: Of every layer the stand-ins, in the order of its entry's parts.
        sources: Where they lie; a layer is in one of them.
        types: Classes of the parts.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.linears: dict[int, list[OffloadedLinear]] = {number: [] for number in sorted(numbers)}
        self.sources: list[LayerSource] = []
        self.types: set[type] = set()
        self._again: dict[Signature, Again] = {}

    def stand_in(self, layer: int) -> OffloadedLinear:
        """A stand-in for the next part of a layer."""
        linear = OffloadedLinear(self)
        self.linears[layer].append(linear)
        return linear

    def knows(self, signature: Signature) -> bool:
        """Can parts of this kind be made?"""
        return signature in self._again

    def learn(self, signature: Signature, again: Again, kind: type[QuantLinear]) -> None:
        """Remember how parts of a kind are made."""
        self._again.setdefault(signature, again)
        self.types.add(kind)

    def source_of(self, layer: int) -> LayerSource:
        """Where a layer lies."""
        return next(source for source in self.sources if layer in source.layers)

    def entry(self, layer: int) -> LayerEntry:
        """How a layer lies there."""
        return self.source_of(layer).layers[layer]

    @property
    def piece_bytes(self) -> int:
        """Bytes that the largest layer takes."""
        return max(self.entry(layer).nbytes for layer in self.linears)

    def make(self, layer: int, piece: Tensor) -> list[QuantLinear]:
        """The parts of a layer over what was brought. uint8 [bytes] →"""
        return [self.make_part(part, piece) for part in self.entry(layer).parts]

    def make_part(self, part: PartEntry, piece: Tensor) -> QuantLinear:
        """One of them."""
        return self._again[part.signature]([_view(piece, place) for place in part.tensors])


class OffloadedWeights:
    """Gives the parts of a target, and stores those that are to lie below; see `Weights`."""

    def __init__(
        self,
        inner: Weights,
        offloaded: OffloadedLayers,
        *,
        memory: MemoryLayers,
        in_memory: Collection[int],
        writer: LayerFileWriter | None,
        stored: LayerFile | None,
        device: torch.device,
    ) -> None:
        """Wrap what gives the parts.

        Args:
            inner: That.
            offloaded: Takes the stand-ins.
            memory: Takes the layers `in_memory`.
            in_memory: Layers that are to lie in the computer's memory, below the device.
            writer: Takes all layers, for the disk; or None.
            stored: Holds all layers already: of all parts of one kind only the first is read.
            device: Where layers are computed.
        """
        self._inner = inner
        self._offloaded = offloaded
        self._memory = memory
        self._in_memory = in_memory
        self._writer = writer
        self._stored = stored
        self._device = device
        self._layer, self._place = -1, 0  # what is being read of what is stored
        self._piece: Tensor | None = None
        self._more_parameters = self._more_bytes = 0

    @property
    def num_parameters(self) -> int:
        return self._inner.num_parameters + self._more_parameters

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes + self._more_bytes

    def vector(self, name: str, size: int) -> Tensor:
        return self._inner.vector(name, size)

    def named(self, name: str, *shape: int) -> Tensor:
        return self._inner.named(name, *shape)

    def embedding(self) -> Tensor:
        return self._inner.embedding()

    def token_table(self, name: str, rows: int, columns: int) -> Tensor | TokenTable:
        return self._inner.token_table(name, rows, columns)

    def lm_head(self, part: LinearSpec, embedding: Tensor) -> QuantLinear:
        return self._inner.lm_head(part, embedding)

    def linear(self, part: LinearSpec) -> QuantLinear:
        layer = _layer_of(part)
        is_offloaded = layer in self._offloaded.linears
        entry = None if self._stored is None else self._entry(layer, part, self._stored)
        if entry is None or not self._offloaded.knows(entry.signature):
            linear = self._read(layer, part, entry)
            self._more_bytes -= linear.nbytes * is_offloaded
            return self._offloaded.stand_in(layer) if is_offloaded else linear
        self._more_parameters += part.rows * (part.columns + part.has_bias)
        if is_offloaded:
            return self._offloaded.stand_in(layer)
        linear = self._offloaded.make_part(entry, self._piece_of(layer))
        self._more_bytes += linear.nbytes
        return linear

    def _read(self, layer: int, part: LinearSpec, entry: PartEntry | None) -> QuantLinear:
        """A part as it is given, learned of, and stored if it isn't yet."""
        linear = self._inner.linear(part)
        layout = linear.layout()
        tensors = [_bytes_of(tensor) for tensor in layout.tensors]
        signature = (layout.kind, tuple((one.dtype, one.shape) for one in tensors))
        self._offloaded.learn(signature, layout.again, type(linear))
        if entry is not None and entry.signature != signature:
            raise _strangers(part)
        if self._writer is not None:
            self._writer.add(layer, part.name, layout.kind, tensors)
        if self._stored is None and layer in self._in_memory:
            self._memory.add(layer, part.name, layout.kind, tensors)
        return linear

    def _entry(self, layer: int, part: LinearSpec, stored: LayerFile) -> PartEntry:
        """A part that is stored; all of its layer is in the tier where it belongs."""
        if layer != self._layer:
            self._layer, self._place, self._piece = layer, 0, None
            if layer in self._in_memory:
                self._memory.adopt(layer, stored)
        parts, place = stored.layers[layer].parts, self._place
        self._place += 1
        if place >= len(parts) or parts[place].name != part.name:
            raise _strangers(part)
        return parts[place]

    def _piece_of(self, layer: int) -> Tensor:
        """A stored layer where it is computed. uint8 [bytes]"""
        if self._piece is None:
            assert self._stored is not None  # else none is stored
            piece = page_buffer(self._stored.layers[layer].nbytes)
            self._stored.read(layer, piece.numpy().data)
            self._piece = piece.to(self._device)
        return self._piece


def offloaded_layers(model: Decoder) -> OffloadedLayers | None:
    """What of a decoder lies below the device; None where nothing does."""
    found = (linear.layers for linear in model.linears if isinstance(linear, OffloadedLinear))
    return next(found, None)


def _strangers(part: LinearSpec) -> TierError:
    return TierError(
        f"The stored layers have another {part.name} than the model.",
        "Remove them from their folder, then load the model again.",
    )


def _layer_of(part: LinearSpec) -> int:
    """The number of the block that a part belongs to, of `layers.0.qkv` 0."""
    return int(part.name.split(".")[1])


def _bytes_of(tensor: Tensor) -> TensorBytes:
    here = tensor.detach().cpu().contiguous()
    content = here.view(-1).view(torch.uint8).numpy().data
    return TensorBytes(_name(tensor.dtype), tuple(tensor.shape), content)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _view(piece: Tensor, place: TensorPlace) -> Tensor:
    inside = piece[place.offset : place.offset + place.nbytes]
    dtype: torch.dtype = getattr(torch, place.dtype)
    return inside.view(dtype).view(place.shape)
