"""A decoder as the compiled step is given it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof, pointer, sizeof

import torch
from torch import Tensor

from medusa_core.models.compiled import is_compiled
from medusa_core.models.decoder import Decoder
from medusa_core.models.experts import ExpertMlps
from medusa_core.models.norm import RmsNorm
from medusa_core.models.plain_block import PlainBlock, PlainConvolution, PlainRecurrence
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import (
    DTYPES,
    NativeLinear,
)
from medusa_core.models.traits import Activation, Factors
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
    ExpertsStruct,
    GateStruct,
    LinearStruct,
    NormsStruct,
    PartNormStruct,
    PositionsStruct,
    RecurrenceStruct,
)

# Of gate.h.
_GATES = {
    Activation.SILU: 0,
    Activation.GELU_TANH: 1,
    Activation.BOUNDED: 2,
    Activation.RELU2: 3,
}
# Where a linear layer's structure lies: of an array or a structure, the place or the field.
_Place = tuple[ctypes.Array[LinearStruct], int] | tuple[ctypes.Structure, str]


class NativeDecoder:
    """The structures of a decoder; its weights stay where they are.

    Attributes:
        library: What computes.
        struct: What the library is given.
    """

    def __init__(self, library: ctypes.CDLL, model: Decoder) -> None:
        config = model.config
        traits, factors = config.traits, config.traits.factors or Factors()
        self.library = library
        self._model = model
        self._kept: list[Tensor] = []  # what the structures point at
        self._num_positions = 0
        self._turns: list[Tensor] = []
        self._positions = (PositionsStruct * len(model.position_tables(1)))()
        self._tokens = model.plain_tokens()
        self._places: dict[int, _Place] = {}  # of stand-ins, by their ids
        self._beside: list[BlockStruct] = []
        self._experts: list[ExpertsStruct] = []
        self._arrays: list[ctypes.Array[LinearStruct]] = []
        self._blocks = (BlockStruct * config.num_layers)()
        for index, struct in enumerate(self._blocks):
            self._describe(struct, model.plain_block(index))
            struct.token_at = index * struct.token_width
        self.struct = DecoderStruct(
            blocks=self._blocks,
            final_norm=self._floats(model.final_norm.weight),
            embedding=model.embedding.data_ptr(),
            embedding_is_half=model.embedding.dtype == torch.bfloat16,
            layers=config.num_layers,
            hidden=config.hidden_size,
            gate=GateStruct(_GATES[traits.activation], traits.activation_bound, factors.gate),
            embedding_scale=traits.embedding_scale,
            residual_scale=traits.residual_scale,
            eps=config.rms_norm_eps,
        )
        if self._tokens is not None:
            self.struct.token_projection = addressof(_struct(self._tokens.projection))
            self.struct.token_norm = self._floats(self._tokens.norm)
            self.struct.token_width = self._tokens.width

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
        struct = DecoderStruct.from_buffer_copy(self.struct)
        struct.layers = layer
        return struct

    def from_layer(self, layer: int, entering: Tensor) -> DecoderStruct:
        """The decoder that begins with a layer.

        Args:
            layer: Which.
            entering: What enters it, in place of token vectors. float32 [n, hidden]
        """
        struct = DecoderStruct.from_buffer_copy(self.struct)
        at = addressof(self._blocks) + layer * sizeof(BlockStruct)
        struct.blocks = ctypes.cast(at, ctypes.POINTER(BlockStruct))
        struct.layers = self.struct.layers - layer
        enter_with(struct, entering)
        return struct

    def embed_from(self, embedding: Tensor) -> None:
        """Look tokens up in these vectors from the next pass on. [any, hidden]"""
        self.struct.embedding = embedding.data_ptr()
        self.struct.embedding_is_half = embedding.dtype == torch.bfloat16

    def scratch_floats(self, num_rows: int, length: int, num_workers: int) -> int:
        """Floats that a pass needs to work in."""
        floats: int = self.library.pass_scratch(
            addressof(self.struct), num_rows, length, num_workers
        )
        return floats

    def layer(self, index: int) -> DecoderStruct:
        """A decoder of one layer, with the token vectors and the last norm of the whole."""
        one = DecoderStruct.from_buffer_copy(self.struct)
        one.blocks, one.layers = pointer(self._blocks[index]), 1
        return one

    def place(self, stand_ins: Sequence[OffloadedLinear], linears: Sequence[QuantLinear]) -> None:
        """Let a layer compute with these linear layers, which stay where they are for so long.

        Args:
            stand_ins: What stands for them in the decoder.
            linears: They, in that order.
        """
        for stand_in, linear in zip(stand_ins, linears, strict=True):
            _put(self._places[id(stand_in)], linear)

    def _describe(self, struct: BlockStruct, block: PlainBlock) -> None:
        """Fill in the structure of a block."""
        for name, linear in block.linears.items():
            self._set((struct, name), linear)
        config, norms = self._model.config, [self._norm(norm) for norm in block.norms]
        num_own = 0 if block.shares_rows else 1 if block.keys_are_values else 2
        mixed, net = config.num_heads * block.head_dim, block.recurrence
        width = mixed + num_own * block.num_kv_heads * block.head_dim
        if net is not None:
            mixed = net.shape.num_heads * net.shape.value_dim
            width = net.row.width
            struct.recurrence = pointer(self._recurrence(net))
        if block.convolution is not None:
            mixed, width = config.hidden_size, 3 * config.hidden_size
        struct.attention_norms, struct.mlp_norms = NormsStruct(*norms[:2]), NormsStruct(*norms[2:])
        struct.q_norm = self._part_norm(block.q_norm, block.norms_turned)
        struct.k_norm = self._part_norm(block.k_norm, block.norms_turned)
        struct.v_norm = self._part_norm(block.v_norm)
        struct.token_norm = self._maybe(block.token_norm)
        struct.token_width = 0 if self._tokens is None else self._tokens.width
        struct.convolution = self._convolution(block.convolution)
        if block.experts is not None:
            struct.experts = addressof(self._experts_of(block.experts))
        if block.table is not None:
            struct.positions = addressof(self._positions[block.table])
        struct.attention = AttentionStruct(
            config.num_heads,
            block.window or 0,
            block.attention_cap or 0.0,
            self._maybe(block.sinks),
        )
        struct.query_scale, struct.scale = block.query_scale, block.scale
        struct.kv_heads, struct.head_dim = block.num_kv_heads, block.head_dim
        struct.mixer_scale, struct.mlp_scale = block.mixer_scale, block.mlp_scale
        struct.inner, struct.factor_at = block.inner, block.inner * block.has_gate
        struct.width = width + mixed * block.is_gated
        struct.mixed = mixed if "output" in block.linears else 0
        struct.gates_at = width * block.is_gated
        struct.keys_are_values = block.keys_are_values
        if block.beside is not None:
            self._beside.append(BlockStruct())
            self._describe(self._beside[-1], block.beside)
            struct.beside = addressof(self._beside[-1])

    def _experts_of(self, experts: ExpertMlps) -> ExpertsStruct:
        traits, array_of = experts.traits, LinearStruct * experts.traits.count
        struct, gate_ups, downs = ExpertsStruct(), array_of(), array_of()
        self._set((struct, "router"), experts.router)
        for number, mlp in enumerate(experts.mlps):
            for array, linear in zip((gate_ups, downs), mlp.linears, strict=True):
                self._set((array, number), linear)
        struct.gate_ups, struct.downs = addressof(gate_ups), addressof(downs)
        struct.count, struct.chosen, struct.inner = traits.count, traits.chosen, traits.width
        struct.normalises, struct.chooses_first = traits.normalises, traits.chooses_first
        linears = (experts.router, *(linear for mlp in experts.mlps for linear in mlp.linears))
        widths = (one.packed_width for one in linears if isinstance(one, NativeLinear))
        struct.packed_width = max(widths, default=0)  # from disk they come without adapters
        self._arrays += (gate_ups, downs)
        self._experts.append(struct)
        return struct

    def _set(self, place: _Place, linear: QuantLinear) -> None:
        """Put a linear layer into its place, now or when it comes."""
        if isinstance(linear, OffloadedLinear):
            self._places[id(linear)] = place
        else:
            _put(place, linear)

    def _maybe(self, vector: Tensor | None) -> int | None:
        return None if vector is None else self._floats(vector)

    def _recurrence(self, net: PlainRecurrence) -> RecurrenceStruct:
        row, is_delta = net.row, net.skip is None
        return RecurrenceStruct(
            conv=self._convolution(net.convolution),
            rate=self._floats(net.rate),
            bias=self._floats(net.step_bias),
            skip=self._maybe(net.skip),
            norm=self._maybe(net.norm),
            factors=self._maybe(net.factors),
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
        return ConvolutionStruct(self._floats(weight.t()), self._maybe(bias), *weight.shape)

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


def _put(place: _Place, linear: QuantLinear) -> None:
    owner, key = place
    if isinstance(key, int):
        assert isinstance(owner, ctypes.Array)
        owner[key] = _struct(linear)
    else:
        setattr(owner, key, _struct(linear))


def _struct(linear: QuantLinear) -> LinearStruct:
    assert isinstance(linear, NativeLinear)  # else there is no NativeDecoder
    return linear.struct
