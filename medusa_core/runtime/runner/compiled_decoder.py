"""A decoder as the compiled step is given it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof, pointer, sizeof

import torch
from torch import Tensor

from medusa_core.models.decoder import LINEARS, Block, Decoder
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import (
    DTYPES,
    NativeLinear,
)
from medusa_core.runtime.offload.linear import (
    OffloadedLinear,
    offloaded_layers,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.lanes import fits_lanes
from medusa_core.system.native.structs import (
    BlockStruct,
    DecoderStruct,
)


class NativeDecoder:
    """The structures of a decoder; its weights stay where they are.

    Attributes:
        library: What computes.
        address: What the library is given.
    """

    def __init__(self, library: ctypes.CDLL, model: Decoder) -> None:
        config = model.config
        self.library = library
        self._model = model
        self._kept: list[Tensor] = []  # what the structures point at
        self._blocks = (BlockStruct * config.num_layers)(*map(self._block, model.blocks))
        self._struct = DecoderStruct(
            blocks=self._blocks,
            final_norm=self._floats(model.final_norm.weight),
            embedding=model.embedding.data_ptr(),
            embedding_is_half=model.embedding.dtype == torch.bfloat16,
            layers=config.num_layers,
            hidden=config.hidden_size,
            inner=config.intermediate_size,
            heads=config.num_heads,
            kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            eps=config.rms_norm_eps,
        )
        self.address = addressof(self._struct)

    def below(self, layer: int) -> DecoderStruct:
        """The decoder that ends before a layer."""
        struct = DecoderStruct.from_buffer_copy(self._struct)
        struct.layers = layer
        return struct

    def from_layer(self, layer: int, entering: Tensor) -> DecoderStruct:
        """The decoder that begins with a layer.

        Args:
            layer: Which.
            entering: What enters it, in place of token vectors. float32 [n, hidden]
        """
        struct = DecoderStruct.from_buffer_copy(self._struct)
        at = addressof(self._blocks) + layer * sizeof(BlockStruct)
        struct.blocks = ctypes.cast(at, ctypes.POINTER(BlockStruct))
        struct.layers = self._struct.layers - layer
        struct.embedding, struct.embedding_is_half = entering.data_ptr(), False
        return struct

    def embed_from(self, embedding: Tensor) -> None:
        """Look tokens up in these vectors from the next pass on. [any, hidden]"""
        self._struct.embedding = embedding.data_ptr()
        self._struct.embedding_is_half = embedding.dtype == torch.bfloat16

    def scratch_floats(self, num_rows: int, length: int, num_workers: int) -> int:
        """Floats that a pass needs to work in."""
        floats: int = self.library.pass_scratch(self.address, num_rows, length, num_workers)
        return floats

    def layer(self, index: int) -> DecoderStruct:
        """A decoder of one layer, with the token vectors and the last norm of the whole."""
        one = DecoderStruct.from_buffer_copy(self._struct)
        one.blocks, one.layers = pointer(self._blocks[index]), 1
        return one

    def place(self, index: int, linears: Sequence[QuantLinear]) -> None:
        """Let a layer compute with these linear layers, which stay where they are for so long."""
        for name, linear in zip(LINEARS, linears, strict=True):
            setattr(self._blocks[index], name, _struct(linear))

    def _block(self, block: Block) -> BlockStruct:
        here = ((name, getattr(block, name)) for name in LINEARS)
        linears = {
            name: _struct(each) for name, each in here if not isinstance(each, OffloadedLinear)
        }
        head_norm = None if block.qk_norm is None else self._floats(block.qk_norm.weight)
        return BlockStruct(
            **linears,
            attention_norm=self._floats(block.attention_norm.weight),
            mlp_norm=self._floats(block.mlp_norm.weight),
            head_norm=head_norm,
        )

    def _floats(self, vector: Tensor) -> int:
        self._kept.append(vector.float().contiguous())
        return self._kept[-1].data_ptr()


def native_decoder(model: Decoder, precision: Precision) -> NativeDecoder | None:
    """The decoder for the compiled step, or None if that can't compute it."""
    library, offloaded = native_library(), offloaded_layers(model)
    if type(model) is not Decoder:
        return None  # a family's own blocks are none of the kernels'
    if not precision.is_usual:
        return None
    fits = (
        precision.device.type == "cpu"
        and precision.compute in DTYPES
        and model.embedding.dtype in DTYPES
        and fits_lanes(*model.config.row_sizes)
        and all(isinstance(linear, NativeLinear | OffloadedLinear) for linear in model.linears)
        and (offloaded is None or offloaded.types == {NativeLinear})
    )
    return NativeDecoder(library, model) if library is not None and fits else None


def _struct(linear: QuantLinear) -> object:
    assert isinstance(linear, NativeLinear)  # else there is no NativeDecoder
    return linear.struct
