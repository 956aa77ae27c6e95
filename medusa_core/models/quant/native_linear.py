"""A linear layer whose weights lie as the compiled step wants them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import addressof
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from medusa_core.models.quant.block_types import BlockType
from medusa_core.models.quant.layout import (
    LinearLayout,
    QuantLinear,
    with_bias,
)
from medusa_core.models.quant.native_adapter import NativeAdapter
from medusa_core.models.quant.tiles import lay_out
from medusa_core.system.native.binding import (
    PANEL,
    native_library,
)
from medusa_core.system.native.pool import (
    Pool,
    Workers,
)
from medusa_core.system.native.structs import LinearStruct

DTYPES = (torch.float32, torch.bfloat16)
_KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}  # of kinds.h
_NUMBERS = {torch.float32: 1, torch.bfloat16: 2, torch.int8: 4}  # of a word


@dataclass(frozen=True, slots=True)
class NativeWeights:
    """Some of a layer's outputs, as the library is given them.

    Attributes:
        weight: In the order of its kind. [flat]
        scale: What int8 weights are multiples of, float32 [outputs]; else None.
        kind: Of kinds.h.
        outputs: Numbers that come out.
        inputs: Numbers that go in.
    """

    weight: Tensor
    scale: Tensor | None
    kind: int
    outputs: int
    inputs: int

    @property
    def nbytes(self) -> int:
        return self.weight.nbytes + (0 if self.scale is None else self.scale.nbytes)


class NativeLinear:
    """y = x Wᵀ + b, and what an adapter adds; a row's result doesn't depend on the rows beside it.

    Attributes:
        nbytes: Bytes that the layer holds.
        num_outputs: Numbers that come out.
        num_inputs: Numbers that go in.
        packed_width: Floats that the library needs for each row meanwhile.
        parts: Its weights, one below the other.
        struct: What the library is given; it lives as long as the layer.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        parts: Sequence[NativeWeights],
        bias: Tensor | None,
        adapter: NativeAdapter | None = None,
    ) -> None:
        """Take weights.

        Args:
            library: What computes.
            parts: Weights of the same inputs, one below the other.
            bias: [outputs], or None.
            adapter: What is added to the outputs, or None.
        """
        self._library = library
        self._adapter = adapter
        self.parts = tuple(parts)
        self._bias = None if bias is None else bias.float().contiguous()
        self.num_outputs = sum(part.outputs for part in parts)
        self.num_inputs = parts[0].inputs
        self.nbytes = sum(part.nbytes for part in parts)
        self.nbytes += 0 if self._bias is None else self._bias.nbytes
        self.nbytes += 0 if adapter is None else adapter.nbytes
        self.packed_width = max(self.num_inputs, 0 if adapter is None else adapter.inner)
        self._workers: Workers | None = None
        self._structs: list[LinearStruct] = []
        end = self.num_outputs
        for part in reversed(parts):  # the last one first, as others point at it
            end -= part.outputs
            self._structs.insert(0, self._struct(part, end))
        self.struct = self._structs[0]
        self.struct.adapter = None if adapter is None else addressof(adapter.struct)

    def _struct(self, part: NativeWeights, first: int) -> LinearStruct:
        return LinearStruct(
            weight=part.weight.data_ptr(),
            bias=None if self._bias is None else self._bias[first:].data_ptr(),
            scale=None if part.scale is None else part.scale.data_ptr(),
            outputs=part.outputs,
            inputs=part.inputs,
            kind=part.kind,
            more=addressof(self._structs[0]) if self._structs else None,
        )

    def share_workers(self, workers: Workers) -> None:
        """Let these threads compute calls, too."""
        self._workers = workers

    def with_adapter(self, adapter: NativeAdapter) -> NativeLinear:
        """A layer over the same memory to which an adapter adds."""
        return NativeLinear(self._library, self.parts, self._bias, adapter)

    def first(self, count: int) -> NativeLinear | None:
        """A layer of the first outputs, over the same memory and by the same threads.

        Args:
            count: A multiple of `PANEL`.

        Returns:
            None where its weights are several, so that the first ones may hold less, or where an
            adapter adds to all of them.
        """
        if len(self.parts) > 1 or self._adapter is not None:
            return None
        bias = None if self._bias is None else self._bias[:count]
        cut = NativeLinear(self._library, [replace(self.parts[0], outputs=count)], bias)
        cut._workers = self._workers
        return cut

    def __call__(self, x: Tensor) -> Tensor:
        pool = None if self._workers is None else self._workers.decoding
        return self.run(x.to(torch.float32).contiguous(), pool).to(x.dtype)

    def run(self, rows: Tensor, pool: Pool | None = None) -> Tensor:
        """[n, in] → [n, out], both float32 and contiguous; the workers of `pool` help."""
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
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        tensors = [
            tensor
            for part in self.parts
            for tensor in (part.weight, part.scale)
            if tensor is not None
        ]
        nothing = torch.empty(0)
        sizes = [
            replace(part, weight=nothing, scale=None if part.scale is None else nothing)
            for part in self.parts
        ]
        named = " ".join(f"{part.kind}:{part.outputs}x{part.inputs}" for part in self.parts)
        again = partial(_again, self._library, sizes)
        whole, adapter = with_bias(tensors, self._bias), self._adapter
        if adapter is None:
            return LinearLayout(f"native {named}", whole, again)

        def with_it(tensors: Sequence[Tensor]) -> NativeLinear:
            its = adapter.again(tensors[len(whole) :])
            return again(tensors[: len(whole)]).with_adapter(its)

        kind = f"native {named} beside {adapter.kind}"
        return LinearLayout(kind, (*whole, *adapter.tensors), with_it)


def _again(
    library: ctypes.CDLL, sizes: Sequence[NativeWeights], tensors: Sequence[Tensor]
) -> NativeLinear:
    """A layer of these sizes over its weights and its bias; see `NativeLinear.layout`."""
    left = list(tensors)
    parts = []
    for part in sizes:
        weight = left.pop(0)
        scale = None if part.scale is None else left.pop(0)
        parts.append(replace(part, weight=weight, scale=scale))
    return NativeLinear(library, parts, left.pop(0) if left else None)


def native_linear(weight: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """A layer for the compiled step, or None where there is none for such weights.

    Args:
        weight: [out, in]
        bias: [out], or None.
    """
    if weight.device.type != "cpu" or weight.dtype not in DTYPES or weight.shape[1] % 2:
        return None
    library = native_library()
    return None if library is None else NativeLinear(library, [panel_weights(weight)], bias)


def native_int8_linear(weight: Tensor, scale: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """A layer of 8-bit weights for the compiled step, or None where there is none for them.

    Inputs are rounded to 8 bits as well, each 64 of a row by their own largest number.

    Args:
        weight: int8, both sizes multiples of 32. [out, in]
        scale: What the weights are multiples of. [out]
        bias: [out], or None.
    """
    library = native_library()
    fits = weight.is_cpu and weight.shape[0] % PANEL == 0 and weight.shape[1] % PANEL == 0
    if library is None or not fits:
        return None
    return NativeLinear(library, [panel_weights(weight, scale.float().contiguous())], bias)


def native_block_linear(of: BlockType, stored: Tensor, bias: Tensor | None) -> NativeLinear | None:
    """A layer of weights in blocks for the compiled step, or None where there is none.

    Inputs are rounded to 8 bits, each 32 of a row by their own largest number.

    Args:
        of: The type of the blocks.
        stored: As files store them; uint8. [out, bytes of a row]
        bias: [out], or None.
    """
    library = native_library()
    if library is None or not stored.is_cpu:
        return None
    return NativeLinear(library, [tile_weights(of, stored)], bias)


def joined(layers: Sequence[NativeLinear], bias: Tensor | None) -> NativeLinear:
    """Layers of the same inputs and without biases as one. [out]"""
    library = native_library()
    assert library is not None  # they are made of it
    return NativeLinear(library, [part for layer in layers for part in layer.parts], bias)


def tile_weights(of: BlockType, stored: Tensor) -> NativeWeights:
    """Weights in blocks, laid out for the library. uint8 [out, bytes of a row] →"""
    kind = of.sizes.tiles.kind
    return NativeWeights(lay_out(of, stored), None, kind, len(stored), of.columns(stored))


def panel_weights(weight: Tensor, scale: Tensor | None = None) -> NativeWeights:
    """Numbers of `DTYPES`, or int8 with a scale for each row, laid out for the library."""
    kind = _KINDS[weight.dtype]
    return NativeWeights(_panels(weight), scale, kind, weight.shape[0], weight.shape[1])


def _panels(weight: Tensor) -> Tensor:
    """Panels of 32 outputs one after the other, as `Linear` of linear.h has it. [flat]"""
    outputs, inputs = weight.shape
    together = _NUMBERS[weight.dtype]
    whole = outputs // PANEL * PANEL
    packed = torch.empty(weight.numel(), dtype=weight.dtype)
    if whole:
        panels = weight[:whole].view(-1, PANEL, inputs // together, together).transpose(1, 2)
        packed[: whole * inputs].view(panels.shape).copy_(panels)
    if outputs > whole:
        rest = weight[whole:].reshape(outputs - whole, -1, together).transpose(0, 1)
        packed[whole * inputs :].view(rest.shape).copy_(rest)
    # A byte is 128 more than its number.
    return packed.view(torch.uint8).bitwise_xor_(128) if weight.dtype == torch.int8 else packed


def share_threads(linears: Iterable[QuantLinear], workers: Workers) -> None:
    """Let threads compute those of some layers that are compiled."""
    for linear in linears:
        if isinstance(linear, NativeLinear):
            linear.share_workers(workers)
