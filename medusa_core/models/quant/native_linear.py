"""Linear layers whose weights are in the layout of the compiled step."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import addressof
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.models.quant.block_types import BlockType
from medusa_core.models.quant.layout import LinearLayout, QuantLinear
from medusa_core.models.quant.native_adapter import NativeAdapter
from medusa_core.models.quant.tiles import tile_blocks
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import PANEL, TensorType
from medusa_core.system.native.pool import Pool, Workers
from medusa_core.system.native.structs import LinearStruct

DTYPES = (torch.float32, torch.bfloat16)
_TYPES = {
    torch.float32: TensorType.F32,
    torch.bfloat16: TensorType.BF16,
    torch.int8: TensorType.I8,
}
_WORD_NUMBERS = {torch.float32: 1, torch.bfloat16: 2, torch.int8: 4}  # per 32-bit word


@dataclass(frozen=True, slots=True)
class NativeWeights:
    """Weights of consecutive outputs, as the library reads them.

    Attributes:
        weight: Weights in the layout of their type. [flat]
        scale: Scales of int8 weights, float32 [outputs]; None for other types.
        type: Type of the weights.
        outputs: Number of outputs.
        inputs: Number of inputs.
    """

    weight: Tensor
    scale: Tensor | None
    type: TensorType
    outputs: int
    inputs: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The weights, and their scales if they have any."""
        return (self.weight,) if self.scale is None else (self.weight, self.scale)


class NativeLinear:
    """y = x Wᵀ + b, plus a LoRA; a row's result doesn't depend on the other rows.

    Attributes:
        nbytes: Bytes of weights, bias and LoRA.
        num_outputs: Number of outputs.
        num_inputs: Number of inputs.
        packed_width: Floats of scratch memory per row that the library needs.
        parts: Weights of consecutive ranges of outputs.
        struct: C structure; it lives as long as the layer.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        parts: Sequence[NativeWeights],
        bias: Tensor | None,
        adapter: NativeAdapter | None = None,
    ) -> None:
        """Describe weights to the library.

        Args:
            parts: Weights of the same inputs, by consecutive outputs.
            bias: [outputs], or None.
            adapter: A LoRA that is added to the outputs, or None.
        """
        self._library = library
        self._adapter = adapter
        self.parts = tuple(parts)
        self._bias = None if bias is None else bias.float().contiguous()
        self.num_outputs = sum(part.outputs for part in parts)
        self.num_inputs = parts[0].inputs
        self.nbytes = sum(tensor.nbytes for tensor in self._tensors)
        self.nbytes += 0 if adapter is None else adapter.nbytes
        self.packed_width = max(self.num_inputs, 0 if adapter is None else adapter.inner)
        self._workers: Workers | None = None
        self._structs: list[LinearStruct] = []
        end = self.num_outputs
        for part in reversed(parts):  # the last one first, as each points at the next
            end -= part.outputs
            self._structs.insert(0, self._struct(part, end))
        self.struct = self._structs[0]
        self.struct.adapter = None if adapter is None else addressof(adapter.struct)

    @property
    def _tensors(self) -> tuple[Tensor, ...]:
        """Weights and bias, without the LoRA."""
        bias = () if self._bias is None else (self._bias,)
        return (*(tensor for part in self.parts for tensor in part.tensors), *bias)

    def _struct(self, part: NativeWeights, first: int) -> LinearStruct:
        """Fill the C structure of the weights whose first output is `first`."""
        return LinearStruct(
            weight=part.weight.data_ptr(),
            bias=None if self._bias is None else self._bias[first:].data_ptr(),
            scale=None if part.scale is None else part.scale.data_ptr(),
            outputs=part.outputs,
            inputs=part.inputs,
            type=part.type,
            next=addressof(self._structs[0]) if self._structs else None,
        )

    def share_workers(self, workers: Workers) -> None:
        """Set the thread pools on which calls run."""
        self._workers = workers

    def with_adapter(self, adapter: NativeAdapter) -> NativeLinear:
        """Return a layer with a LoRA that shares this layer's memory."""
        return NativeLinear(self._library, self.parts, self._bias, adapter)

    def first(self, count: int) -> NativeLinear | None:
        """Return a layer of the first outputs that shares this layer's memory and threads.

        Args:
            count: A multiple of `PANEL`.

        Returns:
            None if the weights are in several parts, of which the first may be too short, or if
            the layer has a LoRA.
        """
        if len(self.parts) > 1 or self._adapter is not None:
            return None
        bias = None if self._bias is None else self._bias[:count]
        sliced = NativeLinear(self._library, [replace(self.parts[0], outputs=count)], bias)
        sliced._workers = self._workers
        return sliced

    def __call__(self, x: Tensor) -> Tensor:
        pool = None if self._workers is None else self._workers.decoding
        return self.run(x.to(torch.float32).contiguous(), pool).to(x.dtype)

    def run(self, rows: Tensor, pool: Pool | None = None) -> Tensor:
        """Multiply rows on the threads of `pool`. [n, in] → [n, out], float32 and contiguous"""
        count = len(rows)
        packed = torch.empty(count, self.packed_width)
        y = torch.empty(count, self.num_outputs)
        self._library.linear(
            None if pool is None else pool.awake(),
            addressof(self.struct),
            rows.data_ptr(),
            packed.data_ptr(),
            count,
            None,
            y.data_ptr(),
        )
        return y

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual. [n, in], [n, out] → [n, out]"""
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        """Return weights, bias and LoRA with a recipe to rebuild the layer from copies."""
        library, count = self._library, len(self._tensors)
        adapter = self._adapter
        remake = None if adapter is None else adapter.recipe()
        # Without tensors: whoever keeps the layout must not keep this layer's memory.
        nothing = torch.empty(0)
        sizes = [
            replace(part, weight=nothing, scale=None if part.scale is None else nothing)
            for part in self.parts
        ]

        def rebuild(*tensors: Tensor) -> NativeLinear:
            """Rebuild the layer from copies of its tensors."""
            left = list(tensors[:count])
            parts = [
                replace(part, weight=left.pop(0), scale=None if part.scale is None else left.pop(0))
                for part in sizes
            ]
            remade = None if remake is None else remake(tensors[count:])
            return NativeLinear(library, parts, left.pop(0) if left else None, remade)

        listed = (f"{part.type:d}:{part.outputs}x{part.inputs}" for part in self.parts)
        kind = f"native {' '.join(listed)}"
        if adapter is None:
            return LinearLayout(kind, self._tensors, rebuild)
        kind = f"{kind} beside {adapter.kind}"
        return LinearLayout(kind, (*self._tensors, *adapter.tensors), rebuild)


def native_linear(weight: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """Make a dense layer for the compiled step; None if the step can't multiply the weights.

    Args:
        weight: [out, in]
        bias: [out], or None.
    """
    if weight.device.type != "cpu" or weight.dtype not in DTYPES or weight.shape[1] % 2:
        return None
    library = native_library()
    return None if library is None else NativeLinear(library, [panel_weights(weight)], bias)


def native_int8_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """Make an int8 layer for the compiled step; None if the step can't multiply the weights.

    Inputs are quantized to 8 bits, too, with a scale for every 64 of a row.

    Args:
        weight: int8, both sizes multiples of 32. [out, in]
        scale: Scale of each row. [out]
        bias: [out], or None.
    """
    library = native_library()
    fits = weight.is_cpu and weight.shape[0] % PANEL == 0 and weight.shape[1] % PANEL == 0
    if library is None or not fits:
        return None
    return NativeLinear(library, [panel_weights(weight, scale.float().contiguous())], bias)


def native_block_linear(
    kind: BlockType, stored: Tensor, bias: Tensor | None
) -> NativeLinear | None:
    """Make a block-quantized layer for the compiled step; None if there is no such step.

    Inputs are quantized to 8 bits, with a scale for every 32 of a row.

    Args:
        kind: Block type.
        stored: Blocks in GGUF's layout. uint8 [out, bytes of a row]
        bias: [out], or None.
    """
    library = native_library()
    if library is None or not stored.is_cpu:
        return None
    return NativeLinear(library, [tile_weights(kind, stored)], bias)


def join_native(layers: Sequence[NativeLinear], bias: Tensor | None) -> NativeLinear:
    """Join layers of the same inputs and without biases; `bias` is that of all outputs. [out]"""
    library = native_library()
    assert library is not None  # the layers refer to it
    return NativeLinear(library, [part for layer in layers for part in layer.parts], bias)


def tile_weights(kind: BlockType, stored: Tensor) -> NativeWeights:
    """Bring block-quantized weights into the library's layout. uint8 [out, bytes of a row] →"""
    tiles = tile_blocks(kind, stored)
    return NativeWeights(tiles, None, kind.sizes.tiles.type, len(stored), kind.columns(stored))


def panel_weights(weight: Tensor, scale: Tensor | None = None) -> NativeWeights:
    """Bring weights of `DTYPES`, or int8 with a scale per row, into the library's layout."""
    return NativeWeights(
        _panels(weight), scale, _TYPES[weight.dtype], weight.shape[0], weight.shape[1]
    )


def _panels(weight: Tensor) -> Tensor:
    """Reorder weights into panels of 32 outputs, the layout of `Linear` in linear.h. [flat]"""
    outputs, inputs = weight.shape
    together = _WORD_NUMBERS[weight.dtype]
    whole = outputs // PANEL * PANEL
    packed = torch.empty(weight.numel(), dtype=weight.dtype)
    if whole:
        panels = weight[:whole].view(-1, PANEL, inputs // together, together).transpose(1, 2)
        packed[: whole * inputs].view(panels.shape).copy_(panels)
    if outputs > whole:
        rest = weight[whole:].reshape(outputs - whole, -1, together).transpose(0, 1)
        packed[whole * inputs :].view(rest.shape).copy_(rest)
    # int8 is stored with an offset of 128, as the kernels multiply unsigned bytes.
    return packed.view(torch.uint8).bitwise_xor_(128) if weight.dtype == torch.int8 else packed


def share_threads(linears: Iterable[QuantLinear], workers: Workers) -> None:
    """Give the compiled layers the thread pools on which their calls run."""
    for linear in linears:
        if isinstance(linear, NativeLinear):
            linear.share_workers(workers)
