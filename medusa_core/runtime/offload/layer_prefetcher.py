"""Puts the weights of offloaded layers in place while a pass computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.offload.gpu_layer_stream import GpuLayerStream
from medusa_core.runtime.offload.layer_stream import LayerStream
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.offload.memory import page_buffer

Prepare = Callable[[QuantLinear], None]


class LayerPrefetcher:
    """Prefetches the offloaded layers of a decoder, in order, once a pass.

    Attributes:
        nbytes: Bytes of the buffers on the device.
    """

    def __init__(
        self, offloaded: OffloadedLayers, device: torch.device, prepare: Prepare | None = None
    ) -> None:
        """Start reading layers.

        Args:
            offloaded: The layers.
            device: Device that computes.
            prepare: Called with each linear layer after it is made from a buffer.
        """
        self._offloaded = offloaded
        self._prepare = prepare
        order = tuple(offloaded.linears)
        self._stream: LayerStream | GpuLayerStream | None = None
        if order:
            self._stream = (
                GpuLayerStream(offloaded, order, device)
                if device.type == "cuda"
                else LayerStream(offloaded, order, page_buffer)
            )
        buffers = () if self._stream is None else self._stream.buffers
        self.nbytes = sum(buffer.nbytes for buffer in buffers)
        self._same_layout = _first_with_layout(offloaded)
        self._made: dict[tuple[int, int], Sequence[QuantLinear]] = {}
        self._acquired: int | None = None

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
        """Seconds of reading, in parallel with computing or not."""
        return 0.0 if self._stream is None else self._stream.read_s

    def set_buffers(self, num_buffers: int) -> None:
        """Restart with another number of buffers, for measurements on a CPU.

        With one buffer nothing is read while a layer is computed. A GPU's stream is unchanged.
        """
        if isinstance(self._stream, LayerStream):
            order = self._stream.order
            self.release()
            self._made.clear()
            self._stream = LayerStream(self._offloaded, order, page_buffer, num_buffers)

    def acquire(self, layer: int) -> Sequence[QuantLinear]:
        """Wait for a layer's weights and put them in place; the layer before is released.

        Returns:
            Linear layers of an offloaded layer, valid until the next call; empty for other layers.

        Raises:
            TierError: It can't be read.
        """
        self.release()
        placeholders = self._offloaded.linears.get(layer)
        if placeholders is None or self._stream is None:
            return ()
        linears = self._linears(self._stream.acquire(layer), layer)
        for placeholder, linear in zip(placeholders, linears, strict=True):
            placeholder.current = linear
        self._acquired = layer
        return linears

    def release(self) -> None:
        """Remove the weights of the acquired layer from their places."""
        if self._acquired is not None:
            for placeholder in self._offloaded.linears[self._acquired]:
                placeholder.current = None
            self._acquired = None

    def _linears(self, index: int, layer: int) -> Sequence[QuantLinear]:
        """Linear layers over a buffer, made once for all layers with the same layout."""
        key = (index, self._same_layout[layer])
        if key not in self._made:
            assert self._stream is not None  # it has read the layer
            buffer: Tensor = self._stream.buffers[index]
            made = self._offloaded.make(layer, buffer)
            for linear in made:
                if self._prepare is not None:
                    self._prepare(linear)
            self._made[key] = made
        return self._made[key]


def _first_with_layout(offloaded: OffloadedLayers) -> dict[int, int]:
    """Map each layer to the first one with the same parts at the same offsets."""
    firsts: dict[object, int] = {}
    return {
        layer: firsts.setdefault(
            tuple((part.kind, part.tensors) for part in offloaded.entry(layer).parts), layer
        )
        for layer in offloaded.linears
    }
