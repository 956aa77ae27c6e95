"""Offloaded layers: their linear layers are loaded when a pass needs them.

While a model is loaded, the linear layers of offloaded decoder layers go to a store one by one, so
that they are never all in memory, and placeholders take their places. Everything else stays on the
device: embedding, norms, lm_head. A runner fills the placeholders of the layer that it computes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.errors import TierError
from medusa_core.i18n import tr
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.quant.layout import (
    LinearLayout,
    QuantLinear,
    Rebuild,
)
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import Weights
from medusa_core.runtime.backends.decoder import Decoder
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
    """Stored layers, read by one thread.

    Attributes:
        layers: Entries by layer index.
    """

    @property
    def layers(self) -> Mapping[int, LayerEntry]:
        """Entries by layer index."""

    def read(self, layer: int, into: memoryview) -> None:
        """Read a layer; see `LayerFile.read`."""


class OffloadedLinear:
    """Placeholder of an offloaded linear layer; see `QuantLinear`.

    Attributes:
        nbytes: Bytes on the device: none.
        layers: All offloaded layers of the model.
        current: The linear layer while it is loaded, else None.
    """

    nbytes = 0

    def __init__(self, layers: OffloadedLayers) -> None:
        self.layers = layers
        self.current: QuantLinear | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return self._loaded()(x)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to the residual; see `QuantLinear`."""
        return self._loaded().plus(x, residual)

    def layout(self) -> LinearLayout:
        """Layout of the loaded linear layer."""
        return self._loaded().layout()

    def _loaded(self) -> QuantLinear:
        """The linear layer, which a runner must have loaded."""
        assert self.current is not None  # a runner computes layer by layer
        return self.current


class OffloadedLayers:
    """Placeholders of offloaded layers, and factories that make linear layers from stored bytes.

    Attributes:
        linears: Placeholders by layer index, in the order of the entry's parts.
        sources: Stores of the layers; each layer is in one of them.
        types: Classes of the linear layers.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.linears: dict[int, list[OffloadedLinear]] = {number: [] for number in sorted(numbers)}
        self.sources: list[LayerSource] = []
        self.types: set[type] = set()
        self._factories: dict[Signature, Rebuild] = {}

    def add_placeholder(self, layer: int) -> OffloadedLinear:
        """Return a placeholder for the next linear layer of a decoder layer."""
        linear = OffloadedLinear(self)
        self.linears[layer].append(linear)
        return linear

    def has_factory(self, signature: Signature) -> bool:
        """Whether linear layers of this signature can be made."""
        return signature in self._factories

    def add_factory(self, signature: Signature, factory: Rebuild, kind: type[QuantLinear]) -> None:
        """Register a function that makes linear layers of a signature."""
        self._factories.setdefault(signature, factory)
        self.types.add(kind)

    def source_of(self, layer: int) -> LayerSource:
        """Return the store of a layer."""
        return next(source for source in self.sources if layer in source.layers)

    def entry(self, layer: int) -> LayerEntry:
        """Return the entry of a layer in its store."""
        return self.source_of(layer).layers[layer]

    @property
    def piece_bytes(self) -> int:
        """Bytes of the largest layer."""
        return max(self.entry(layer).nbytes for layer in self.linears)

    def make(self, layer: int, piece: Tensor) -> list[QuantLinear]:
        """Make the linear layers of a decoder layer as views of its piece. uint8 [bytes]"""
        return [self.make_part(part, piece) for part in self.entry(layer).parts]

    def make_part(self, part: PartEntry, piece: Tensor) -> QuantLinear:
        """Make one linear layer as views of a piece. uint8 [bytes]"""
        return self._factories[part.signature](*(_view(piece, place) for place in part.tensors))


class OffloadedWeights:
    """Reads the weights of a target and stores those of offloaded layers; see `Weights`."""

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
        """Wrap the weights of a checkpoint.

        Args:
            inner: Weights of the checkpoint.
            offloaded: Gets the placeholders.
            memory: Gets the layers `in_memory`.
            in_memory: Layers that are offloaded to main memory.
            writer: Gets all layers, for the disk tier; or None.
            stored: File with all layers, if there is one: then only the first linear layer of each
                signature is read from the checkpoint.
            device: Device of layers that aren't offloaded.
        """
        self._inner = inner
        self._offloaded = offloaded
        self._memory = memory
        self._in_memory = in_memory
        self._writer = writer
        self._stored = stored
        self._device = device
        self._layer, self._place = -1, 0  # the next linear layer in the file
        self._piece: Tensor | None = None
        self._more_parameters = self._more_bytes = 0

    @property
    def num_parameters(self) -> int:
        """Parameters read from the checkpoint or found in the file."""
        return self._inner.num_parameters + self._more_parameters

    @property
    def nbytes(self) -> int:
        """Bytes on the device, without offloaded layers."""
        return self._inner.nbytes + self._more_bytes

    def vector(self, name: str, size: int) -> Tensor:
        """Read a vector from the checkpoint."""
        return self._inner.vector(name, size)

    def named(self, name: str, *shape: int) -> Tensor:
        """Read a tensor from the checkpoint."""
        return self._inner.named(name, *shape)

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Open an embedding table of the checkpoint."""
        return self._inner.token_table(name, rows, columns)

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """Read the output projection from the checkpoint."""
        return self._inner.lm_head(part, embedding)

    def linear(self, part: LinearSpec) -> QuantLinear:
        """Read a linear layer from the file or the checkpoint; a placeholder if it is offloaded."""
        layer = _layer_of(part)
        is_offloaded = layer in self._offloaded.linears
        entry = None if self._stored is None else self._entry(layer, part, self._stored)
        if entry is None or not self._offloaded.has_factory(entry.signature):
            linear = self._read(layer, part, entry)
            self._more_bytes -= linear.nbytes * is_offloaded
            return self._offloaded.add_placeholder(layer) if is_offloaded else linear
        self._more_parameters += part.rows * (part.columns + part.has_bias)
        if is_offloaded:
            return self._offloaded.add_placeholder(layer)
        linear = self._offloaded.make_part(entry, self._piece_of(layer))
        self._more_bytes += linear.nbytes
        return linear

    def _read(self, layer: int, part: LinearSpec, entry: PartEntry | None) -> QuantLinear:
        """Read a linear layer from the checkpoint, register its factory, and store it if needed."""
        linear = self._inner.linear(part)
        layout = linear.layout()
        tensors = [_bytes_of(tensor) for tensor in layout.tensors]
        signature = (layout.kind, tuple((one.dtype, one.shape) for one in tensors))
        self._offloaded.add_factory(signature, layout.rebuild, type(linear))
        if entry is not None and entry.signature != signature:
            raise _other_model(part)
        if self._writer is not None:
            self._writer.add(layer, part.name, layout.kind, tensors)
        if self._stored is None and layer in self._in_memory:
            self._memory.add(layer, part.name, layout.kind, tensors)
        return linear

    def _entry(self, layer: int, part: LinearSpec, stored: LayerFile) -> PartEntry:
        """Find a linear layer in the file; its decoder layer is loaded if it belongs in memory."""
        if layer != self._layer:
            self._layer, self._place, self._piece = layer, 0, None
            if layer in self._in_memory:
                self._memory.load(layer, stored)
        parts, place = stored.layers[layer].parts, self._place
        self._place += 1
        if place >= len(parts) or parts[place].name != part.name:
            raise _other_model(part)
        return parts[place]

    def _piece_of(self, layer: int) -> Tensor:
        """Load a stored layer on the device. uint8 [bytes]"""
        if self._piece is None:
            assert self._stored is not None  # else none is stored
            piece = page_buffer(self._stored.layers[layer].nbytes)
            self._stored.read(layer, piece.numpy().data)
            self._piece = piece.to(self._device)
        return self._piece


def offloaded_layers(model: Decoder) -> OffloadedLayers | None:
    """Return the offloaded layers of a decoder; None if there are none."""
    found = (linear.layers for linear in model.linears if isinstance(linear, OffloadedLinear))
    return next(found, None)


def _other_model(part: LinearSpec) -> TierError:
    """The error of stored layers that belong to another model."""
    return TierError(
        tr("The stored layers have another {0} than the model.", part.name),
        "Remove them from their folder, then load the model again.",
    )


def _layer_of(part: LinearSpec) -> int:
    """Return the layer index in a name such as `layers.0.qkv`."""
    return int(part.name.split(".")[1])


def _bytes_of(tensor: Tensor) -> TensorBytes:
    """A tensor as bytes with dtype and shape."""
    on_host = tensor.detach().cpu().contiguous()
    content = on_host.view(-1).view(torch.uint8).numpy().data
    return TensorBytes(_name(tensor.dtype), tuple(tensor.shape), content)


def _name(dtype: torch.dtype) -> str:
    """Name of a torch dtype."""
    return str(dtype).removeprefix("torch.")


def _view(piece: Tensor, place: TensorPlace) -> Tensor:
    """View a tensor in a piece."""
    inside = piece[place.offset : place.offset + place.nbytes]
    dtype: torch.dtype = getattr(torch, place.dtype)
    return inside.view(dtype).view(place.shape)
