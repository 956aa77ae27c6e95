"""A decoder as the compiled step is given it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof, pointer, sizeof

import torch
from torch import Tensor

from medusa_core.models.compiled import is_compiled
from medusa_core.models.decoder import Decoder
from medusa_core.models.norm import RmsNorm
from medusa_core.models.plain_block import PlainBlock, PlainConvolution, PlainRecurrence
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import (
    DTYPES,
    NativeLinear,
)
from medusa_core.models.traits import Activation
from medusa_core.runtime.kv.panel_cache import shape_struct
from medusa_core.runtime.offload.linear import (
    OffloadedLinear,
    offloaded_layers,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.structs import (
    AttentionStruct,
    BlockStruct,
    ConvolutionStruct,
    DecoderStruct,
    LinearStruct,
    NormsStruct,
    PartNormStruct,
    PositionsStruct,
    RecurrenceStruct,
)

_ACTIVATIONS = {Activation.SILU: 0, Activation.GELU_TANH: 1, Activation.RELU2: 2}  # of decoder.h


class NativeDecoder:
    """The structures of a decoder; its weights stay where they are.

    Attributes:
        library: What computes.
        address: What the library is given.
    """

    def __init__(self, library: ctypes.CDLL, model: Decoder) -> None:
        config = model.config
        traits = config.traits
        self.library = library
        self._model = model
        self._kept: list[Tensor] = []  # what the structures point at
        self._num_positions = 0
        self._turns: list[Tensor] = []
        self._positions = (PositionsStruct * len(model.position_tables(1)))()
        self._tokens = model.plain_tokens()
        # By the ids of stand-ins: whose linear layer each stands for, and which.
        self._stand_ins: dict[int, tuple[BlockStruct, str]] = {}
        self._beside: list[BlockStruct] = []
        self._blocks = (BlockStruct * config.num_layers)()
        for index in range(config.num_layers):
            self._put(index, model.plain_block(index))
        self._struct = DecoderStruct(
            blocks=self._blocks,
            final_norm=self._floats(model.final_norm.weight),
            embedding=model.embedding.data_ptr(),
            embedding_is_half=model.embedding.dtype == torch.bfloat16,
            layers=config.num_layers,
            hidden=config.hidden_size,
            activation=_ACTIVATIONS[traits.activation],
            embedding_scale=traits.embedding_scale,
            residual_scale=traits.residual_scale,
            eps=config.rms_norm_eps,
        )
        if self._tokens is not None:
            self._struct.token_projection = addressof(_struct(self._tokens.projection))
            self._struct.token_norm = self._floats(self._tokens.norm)
            self._struct.token_width = self._tokens.width
        self.address = addressof(self._struct)

    def reach(self, num_positions: int) -> None:
        """Have the tables of so many positions at hand."""
        if num_positions <= self._num_positions:
            return
        self._num_positions = num_positions
        self._turns.clear()
        tables = self._model.position_tables(num_positions)
        for struct, table in zip(self._positions, tables, strict=True):
            self._turns.append(torch.view_as_real(table.turns).contiguous())
            struct.turns = self._turns[-1].data_ptr()
            if table.growth is not None:
                self._turns.append(table.growth.float().contiguous())
                struct.growth = self._turns[-1].data_ptr()

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
        enter_with(struct, entering)
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

    def place(
        self, index: int, stand_ins: Sequence[OffloadedLinear], linears: Sequence[QuantLinear]
    ) -> None:
        """Let a layer compute with these linear layers, which stay where they are for so long.

        Args:
            index: Which layer.
            stand_ins: What stands for them in the decoder.
            linears: They, in that order.
        """
        for stand_in, linear in zip(stand_ins, linears, strict=True):
            block, name = self._stand_ins[id(stand_in)]
            setattr(block, name, _struct(linear))

    def _put(self, index: int, block: PlainBlock) -> None:
        """Let a layer be a block."""
        self._blocks[index] = self._block(block)
        struct = self._blocks[index]  # where the copy lies
        struct.token_at = index * struct.token_width
        self._know_stand_ins(block, struct)
        if block.beside is not None:
            other = self._block(block.beside)
            self._beside.append(other)
            self._know_stand_ins(block.beside, other)
            struct.beside = addressof(other)

    def _know_stand_ins(self, block: PlainBlock, struct: BlockStruct) -> None:
        for name, linear in block.linears.items():
            if isinstance(linear, OffloadedLinear):
                self._stand_ins[id(linear)] = struct, name

    def _block(self, block: PlainBlock) -> BlockStruct:
        linears = {
            name: _struct(linear)
            for name, linear in block.linears.items()
            if not isinstance(linear, OffloadedLinear)
        }
        config, norms = self._model.config, [self._norm(norm) for norm in block.norms]
        num_own = 0 if block.shares_rows else 1 if block.keys_are_values else 2
        mixed, net = config.num_heads * block.head_dim, block.recurrence
        width = mixed + num_own * block.num_kv_heads * block.head_dim
        if net is not None:
            mixed = net.shape.num_heads * net.shape.value_dim
            width = net.row.width
        if block.convolution is not None:
            mixed, width = config.hidden_size, 3 * config.hidden_size
        inner = block.inner if "down" in block.linears else 0
        return BlockStruct(
            **linears,
            attention_norms=NormsStruct(*norms[:2]),
            mlp_norms=NormsStruct(*norms[2:]),
            q_norm=self._part_norm(block.q_norm, block.norms_turned),
            k_norm=self._part_norm(block.k_norm, block.norms_turned),
            v_norm=self._part_norm(block.v_norm),
            token_norm=None if block.token_norm is None else self._floats(block.token_norm),
            token_width=0 if self._tokens is None else self._tokens.width,
            positions=None if block.table is None else addressof(self._positions[block.table]),
            attention=AttentionStruct(
                config.num_heads, block.window or 0, block.attention_cap or 0.0
            ),
            query_scale=block.query_scale,
            scale=block.scale,
            mixer_scale=block.mixer_scale,
            gate_scale=block.gate_scale,
            mlp_scale=block.mlp_scale,
            convolution=self._convolution(block.convolution),
            kv_heads=block.num_kv_heads,
            head_dim=block.head_dim,
            inner=inner,
            factor_at=inner * block.has_gate,
            width=width + mixed * block.is_gated,
            keys_are_values=block.keys_are_values,
            gates_at=width * block.is_gated,
            mixed=mixed if "output" in block.linears else 0,
            recurrence=None if net is None else pointer(self._recurrence(net)),
        )

    def _recurrence(self, net: PlainRecurrence) -> RecurrenceStruct:
        row, is_delta = net.row, net.skip is None
        return RecurrenceStruct(
            conv=self._convolution(net.convolution),
            rate=self._floats(net.rate),
            bias=self._floats(net.step_bias),
            skip=None if net.skip is None else self._floats(net.skip),
            norm=None if net.norm is None else self._floats(net.norm),
            factors=None if net.factors is None else self._floats(net.factors),
            shape=shape_struct(net.shape),
            place=net.place,
            tiles=net.tiles,
            together=net.together,
            gates_first=net.gates_first,
            is_delta=is_delta,
            width=row.width,
            inputs_at=row.inputs,
            gate_at=row.gate,
            queries_at=row.queries,
            keys_at=row.keys,
            values_at=row.values,
            steps_apart=is_delta,
            steps_width=row.steps_width,
            steps_at=row.steps,
            least_step=net.least_step,
            most_step=net.most_step,
            eps=net.eps,
        )

    def _convolution(self, convolution: PlainConvolution | None) -> ConvolutionStruct:
        if convolution is None:
            return ConvolutionStruct()
        weight, bias = convolution.weight, convolution.bias
        its_bias = None if bias is None else self._floats(bias)
        return ConvolutionStruct(self._floats(weight.t()), its_bias, *weight.shape)

    def _norm(self, norm: RmsNorm | None) -> int | None:
        return None if norm is None else self._floats(norm.weight)

    def _part_norm(self, weight: Tensor | None, is_behind: bool = False) -> PartNormStruct:
        if weight is None:
            return PartNormStruct()
        return PartNormStruct(self._floats(weight), len(weight), is_behind)

    def _floats(self, vector: Tensor) -> int:
        self._kept.append(vector.float().contiguous())
        return self._kept[-1].data_ptr()


def enter_with(struct: DecoderStruct, entering: Tensor) -> None:
    """Let rows enter a decoder as they are, in place of token vectors. float32 [..., hidden]"""
    struct.embedding, struct.embedding_is_half = entering.data_ptr(), False
    struct.embedding_scale, struct.token_projection = 1.0, None


def native_decoder(model: Decoder, precision: Precision) -> NativeDecoder | None:
    """The decoder for the compiled step, or None if that can't compute it."""
    library, offloaded = native_library(), offloaded_layers(model)
    tokens = model.plain_tokens()
    fits = (
        precision.is_usual
        and precision.device.type == "cpu"
        and precision.compute in DTYPES
        and model.embedding.dtype in DTYPES
        and is_compiled(model.config)
        and all(isinstance(linear, NativeLinear | OffloadedLinear) for linear in model.linears)
        and (tokens is None or isinstance(tokens.projection, NativeLinear))
        and (offloaded is None or offloaded.types == {NativeLinear})
    )
    return NativeDecoder(library, model) if library is not None and fits else None


def _struct(linear: QuantLinear) -> LinearStruct:
    assert isinstance(linear, NativeLinear)  # else there is no NativeDecoder
    return linear.struct
