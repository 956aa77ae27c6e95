"""Puts the parts of layers from below in their places while a pass comes by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.offload.cuda_stream import CudaLayers
from medusa_core.runtime.offload.layer_stream import LayerStream
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.offload.memory import page_buffer

Prepare = Callable[[QuantLinear], None]


class Visits:
    """The layers of a decoder that lie below, visited in order once a pass.

    Attributes:
        nbytes: Bytes of the buffers on the device.
    """

    def __init__(
        self, offloaded: OffloadedLayers, device: torch.device, prepare: Prepare | None = None
    ) -> None:
        """Begin to bring layers.

        Args:
            offloaded: They.
            device: Where they are computed.
            prepare: Given every part when it is made over a buffer.
        """
        self._offloaded = offloaded
        self._prepare = prepare
        order = tuple(offloaded.linears)
        self._stream: LayerStream | CudaLayers | None = None
        if order:
            self._stream = (
                CudaLayers(offloaded, order, device)
                if device.type == "cuda"
                else LayerStream(offloaded, order, page_buffer)
            )
        buffers = () if self._stream is None else self._stream.buffers
        self.nbytes = sum(buffer.nbytes for buffer in buffers)
        self._alike = _alike(offloaded)
        self._made: dict[tuple[int, int], Sequence[QuantLinear]] = {}
        self._last: int | None = None

    @property
    def waited_s(self) -> float:
        """Seconds that the device has waited for layers so far."""
        return 0.0 if self._stream is None else self._stream.waited_s

    @property
    def read_bytes(self) -> int:
        """Bytes that were read so far."""
        return 0 if self._stream is None else self._stream.read_bytes

    @property
    def read_s(self) -> float:
        """Seconds that this took, beside computing or not."""
        return 0.0 if self._stream is None else self._stream.read_s

    def read_ahead(self, num_buffers: int) -> None:
        """Begin anew with so many buffers: with one, nothing is read while a layer computes.

        For measurements on a processor; a card's copies keep their buffers.
        """
        if isinstance(self._stream, LayerStream):
            order = self._stream.order
            self.leave()
            self._made.clear()
            self._stream = LayerStream(self._offloaded, order, page_buffer, num_buffers)

    def enter(self, layer: int) -> Sequence[QuantLinear]:
        """A pass comes to a layer; it has left the one before.

        Returns:
            The layer's parts where it lies below: they are in their places until the next call.
            Nothing for other layers.

        Raises:
            TierError: It can't be read.
        """
        self.leave()
        stand_ins = self._offloaded.linears.get(layer)
        if stand_ins is None or self._stream is None:
            return ()
        parts = self._parts(self._stream.take(layer), layer)
        for stand_in, part in zip(stand_ins, parts, strict=True):
            stand_in.now = part
        self._last = layer
        return parts

    def leave(self) -> None:
        """The pass has left the layer that it came to."""
        if self._last is not None:
            for stand_in in self._offloaded.linears[self._last]:
                stand_in.now = None
            self._last = None

    def _parts(self, place: int, layer: int) -> Sequence[QuantLinear]:
        """The parts over a buffer: made once for all layers that lie alike."""
        key = (place, self._alike[layer])
        if key not in self._made:
            assert self._stream is not None  # it has brought the layer
            buffer: Tensor = self._stream.buffers[place]
            made = self._offloaded.make(layer, buffer)
            for part in made:
                if self._prepare is not None:
                    self._prepare(part)
            self._made[key] = made
        return self._made[key]


def _alike(offloaded: OffloadedLayers) -> dict[int, int]:
    """Of every layer the first one that lies as it does: the same parts in the same places."""
    firsts: dict[object, int] = {}
    return {
        layer: firsts.setdefault(
            tuple((part.kind, part.tensors) for part in offloaded.entry(layer).parts), layer
        )
        for layer in offloaded.linears
    }
