"""Describes a decoder to the compiled step by C structures."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from ctypes import addressof, sizeof
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.models.blocks.spec import ActivationSpec, BlockSpec, MlpSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.native_linear import (
    DTYPES,
    NativeLinear,
)
from medusa_core.runtime.backends.activation import Active
from medusa_core.runtime.backends.block import (
    Attention,
    Block,
    DeltaNet,
    Mamba2,
    Mixer,
    ParallelExperts,
    ShortConvolution,
)
from medusa_core.runtime.backends.decoder import Decoder, PerLayerInputs
from medusa_core.runtime.backends.experts import SUM_EPS, ExpertMlps, Mlp
from medusa_core.runtime.backends.host_mlp import HostMlp
from medusa_core.runtime.backends.native_limits import why_not
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.kv.panel_cache import shape_struct
from medusa_core.runtime.offload.linear import (
    OffloadedLinear,
    offloaded_layers,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import ActivationCode, ScoringCode, fits_lanes
from medusa_core.system.native.pool import Workers
from medusa_core.system.native.structs import (
    ActivationStruct,
    AttentionStruct,
    BlockStruct,
    ConvolutionStruct,
    DecoderStruct,
    ExpertsStruct,
    HeadNormStruct,
    HeadsStruct,
    LinearStruct,
    MlpShapeStruct,
    NormsStruct,
    ParallelExpertsStruct,
    PathHeadStruct,
    RecurrenceStruct,
    RopeStruct,
)

# Where the structure of a linear layer is: index in an array, or field of a structure.
_Place = tuple[ctypes.Array[LinearStruct], int] | tuple[ctypes.Structure, str]


class DescribedLayers(Protocol):
    """Layers that `NativeDecoder` describes; see `Decoder` for the members."""

    @property
    def config(self) -> ModelConfig:
        """Sizes of the layers."""

    @property
    def blocks(self) -> Sequence[Block]:
        """The layers."""

    @property
    def ropes(self) -> Sequence[Rope]:
        """Rotary embeddings."""

    @property
    def final_norm(self) -> RmsNorm:
        """Norm after the last layer."""

    @property
    def per_layer(self) -> PerLayerInputs | None:
        """Per-layer embeddings, or None."""

    def rotations(self, num_positions: int) -> list[Tensor]:
        """Return the table of each rope."""

    def attn_temperature_scale(self, num_positions: int) -> Tensor | None:
        """Return the scale of rotated queries at every position, or None."""


class NativeDecoder:
    """C structures of a decoder, which point to its weights.

    Attributes:
        library: The compiled library.
        struct: The C `Decoder`.
    """

    def __init__(self, library: ctypes.CDLL, model: DescribedLayers) -> None:
        config = model.config
        self.library = library
        self._model = model
        self._kept: list[Tensor] = []  # float32 copies that the structures point to
        self._num_positions = self._first_position = 0
        self._rope_tables: list[Tensor] = []
        self._ropes = (RopeStruct * len(model.ropes))()
        self._per_layer_width = 0 if model.per_layer is None else model.per_layer.width
        self._places: dict[int, _Place] = {}  # of placeholders, by their ids
        self._second_mixers: list[BlockStruct] = []
        self._num_states = 0  # recurrent layers so far
        self._recurrences: list[RecurrenceStruct] = []
        self._experts: list[ExpertsStruct] = []
        self._parallel_experts: list[ParallelExpertsStruct] = []
        self._arrays: list[ctypes.Array[LinearStruct]] = []
        self._blocks = (BlockStruct * config.num_layers)()
        for index, struct in enumerate(self._blocks):
            self._describe(struct, model.blocks[index])
            struct.per_layer_offset = index * struct.per_layer_width
        self.struct = DecoderStruct(
            blocks=addressof(self._blocks),
            final_norm=self._floats(model.final_norm.weight),
            num_layers=config.num_layers,
            hidden_size=config.hidden_size,
            activation=_activation_struct(config.activation),
            embedding_multiplier=config.embedding_multiplier,
            residual_multiplier=_residual_multiplier(config.blocks),
            eps=config.rms_norm_eps,
        )
        if model.per_layer is not None:
            self.struct.per_layer_projection = addressof(_struct(model.per_layer.projection))
            self.struct.per_layer_norm = self._floats(model.per_layer.norm.weight)
            self.struct.per_layer_width = model.per_layer.width

    def extend_rope(self, num_positions: int) -> None:
        """Extend the RoPE tables to a number of positions."""
        if num_positions <= self._num_positions:
            return
        self._num_positions, self._first_position = num_positions, 0
        self._rope_tables.clear()
        tables = self._model.rotations(num_positions)
        scale = self._model.attn_temperature_scale(num_positions)
        for struct, table in zip(self._ropes, tables, strict=True):
            self._rope_tables.append(torch.view_as_real(table).contiguous())
            struct.cos_sin = self._rope_tables[-1].data_ptr()
        if scale is not None:
            self._rope_tables.append(scale.float().contiguous())
            self._ropes[0].attn_temperature_scale = self._rope_tables[-1].data_ptr()

    def start_at(self, position: int, num_rows: int) -> None:
        """Give the first row of caches another RoPE position than 0.

        Args:
            position: The position.
            num_rows: Rows that the tables must have from there on.
        """
        self.extend_rope(position + num_rows)
        if position == self._first_position:
            return
        self._first_position = position
        for struct, table in zip(self._ropes, self._rope_tables, strict=False):
            struct.cos_sin = table[position:].data_ptr()
        if len(self._rope_tables) > len(self._ropes):
            self._ropes[0].attn_temperature_scale = self._rope_tables[-1][position:].data_ptr()

    def up_to_layer(self, layer: int) -> DecoderStruct:
        """Return a decoder of the layers before one."""
        struct = DecoderStruct.from_buffer_copy(self.struct)
        struct.num_layers = layer
        return struct

    def from_layer(self, layer: int, entering: Tensor) -> DecoderStruct:
        """Return a decoder of the layers from one on.

        Args:
            layer: Index of the first layer.
            entering: Its input, in place of the embedding table. float32 [n, hidden]
        """
        struct = DecoderStruct.from_buffer_copy(self.struct)
        struct.blocks = addressof(self._blocks) + layer * sizeof(BlockStruct)
        struct.num_layers = self.struct.num_layers - layer
        set_input(struct, entering)
        return struct

    def scratch_floats(self, num_rows: int, length: int, num_workers: int) -> int:
        """Return the number of floats of scratch memory for a pass."""
        floats: int = self.library.pass_scratch(
            addressof(self.struct), num_rows, length, num_workers
        )
        return floats

    def layer(self, index: int) -> DecoderStruct:
        """Return a decoder of one layer, with the final norm."""
        one = DecoderStruct.from_buffer_copy(self.struct)
        one.blocks, one.num_layers = addressof(self._blocks[index]), 1
        return one

    def fill_placeholders(
        self, placeholders: Sequence[OffloadedLinear], linears: Sequence[QuantLinear]
    ) -> None:
        """Set the linear layers of an offloaded layer; they must stay in memory while it computes.

        Args:
            placeholders: Placeholders in the decoder.
            linears: The linear layers, in the same order.
        """
        for placeholder, linear in zip(placeholders, linears, strict=True):
            _put(self._places[id(placeholder)], linear)

    def _describe(self, struct: BlockStruct, block: Block) -> None:
        """Fill in a block's structure; a second mixer has a structure of its own."""
        first, *others = block.mixers or (None,)
        self._describe_mixer(struct, block, first)
        self._describe_mlp(struct, block)
        for mixer in others:
            self._second_mixers.append(BlockStruct())
            self._describe_mixer(self._second_mixers[-1], block, mixer)
            struct.parallel_mixer = addressof(self._second_mixers[-1])
        self._num_states += block.spec.state is not None

    def _describe_mixer(self, struct: BlockStruct, block: Block, mixer: Mixer | None) -> None:
        """Fill in the fields of a token mixer."""
        config = self._model.config
        struct.output_scale = struct.mixer_scale = struct.mlp_scale = struct.query_scale = 1.0
        struct.num_kv_heads, struct.head_dim = config.num_kv_heads, config.head_dim
        struct.attention = AttentionStruct(config.num_heads, 0, 0.0, None)
        if mixer is None:
            return
        post = block.post_norm if mixer is block.mixers[0] else None
        pre = self._norm(block.pre_norm, mixer.spec.input_multiplier)
        struct.mixer_norms = NormsStruct(pre, self._norm(post))
        struct.mixer_scale = mixer.spec.output_multiplier
        self._set_linear((struct, "output"), mixer.output)
        if isinstance(mixer, Attention):
            self._attention(struct, mixer)
        elif isinstance(mixer, ShortConvolution):
            self._set_linear((struct, "qkv"), mixer.in_proj)
            struct.mixer_width = self._model.config.hidden_size
            struct.qkv_width = 3 * struct.mixer_width
            struct.convolution = self._convolution(mixer.conv, mixer.bias)
        else:
            self._set_linear((struct, "qkv"), mixer.in_proj)
            self._recurrent(struct, mixer)

    def _attention(self, struct: BlockStruct, attention: Attention) -> None:
        """Fill in the fields of attention."""
        spec = attention.spec
        self._set_linear((struct, "qkv"), attention.qkv)
        num_own = spec.owned_kv_heads * (1 if spec.k_eq_v else 2)
        width = (spec.num_heads + num_own) * spec.head_dim
        struct.qkv_width = width + spec.inner * spec.is_gated
        struct.gate_offset = width * spec.is_gated
        struct.mixer_width = spec.inner
        struct.attention = AttentionStruct(
            spec.num_heads,
            spec.sliding_window or 0,
            spec.attn_logit_softcapping or 0.0,
            self._optional(attention.sinks),
        )
        struct.query_scale = spec.softmax_scale
        struct.num_kv_heads, struct.head_dim = spec.num_kv_heads, spec.head_dim
        struct.values_are_keys = spec.k_eq_v
        if spec.rope is not None:
            struct.rope = addressof(self._ropes[spec.rope])
        norm, scales = attention.qk_norm, attention.head_scales
        if scales is not None:
            struct.q_norm = self._part_norm(scales[0], after_rope=True)
            struct.k_norm = self._part_norm(scales[spec.num_heads], after_rope=True)
        elif norm is not None:
            struct.q_norm = self._part_norm(norm.q_weight)
            struct.k_norm = self._part_norm(norm.k_weight)
        if attention.v_norm is not None:
            struct.v_norm = self._part_norm(attention.v_norm.weight)

    def _recurrent(self, struct: BlockStruct, mixer: DeltaNet | Mamba2) -> None:
        """Fill in the fields of a recurrent mixer."""
        shape = mixer.spec.state
        struct.mixer_width = shape.num_heads * shape.value_dim
        if isinstance(mixer, DeltaNet):
            self._set_linear((struct, "dt"), mixer.gates)
            recurrence = self._delta_net(mixer)
        else:
            recurrence = self._mamba(mixer)
        struct.qkv_width = recurrence.width
        self._recurrences.append(recurrence)
        struct.recurrence = addressof(recurrence)

    def _describe_mlp(self, struct: BlockStruct, block: Block) -> None:
        """Fill in the fields of the MLP or experts, and of the per-layer input."""
        norms = (self._norm(block.pre_mlp_norm), self._norm(block.post_mlp_norm))
        struct.mlp_norms = NormsStruct(*norms)
        struct.mlp_scale = block.spec.mlp_multiplier
        struct.output_scale = 1.0 if block.scale is None else float(block.scale)
        mlp = block.mlp
        assert not isinstance(mlp, HostMlp)  # those are of models on a card
        if isinstance(mlp, ExpertMlps):
            struct.experts = addressof(self._experts_of(mlp))
        elif mlp is not None:
            self._mlp(struct, mlp)
        if block.parallel_experts is not None:
            struct.parallel_experts = addressof(self._parallel_experts_of(block.parallel_experts))
        struct.per_layer_width = self._per_layer_width
        if block.per_layer is not None:
            self._set_linear((struct, "per_layer_gate"), block.per_layer.gate)
            self._set_linear((struct, "per_layer_projection"), block.per_layer.projection)
            struct.per_layer_norm = self._floats(block.per_layer.norm.weight)

    def _mlp(self, struct: BlockStruct, mlp: Mlp) -> None:
        """Fill in the fields of an MLP."""
        self._set_linear((struct, "gate_up"), mlp.gate_up)
        self._set_linear((struct, "down"), mlp.down)
        struct.mlp = _shape_of(mlp.spec)

    def _experts_of(self, experts: ExpertMlps) -> ExpertsStruct:
        """Describe experts, their router and their shared expert."""
        struct, *arrays = describe_experts(experts, self._set_linear, self._optional)
        self._arrays += arrays
        self._experts.append(struct)
        return struct

    def _parallel_experts_of(self, beside: ParallelExperts) -> ParallelExpertsStruct:
        """Describe experts in parallel to an MLP."""
        assert isinstance(beside.experts, ExpertMlps)  # see `_describe_mlp`
        struct = ParallelExpertsStruct(
            experts=addressof(self._experts_of(beside.experts)),
            pre_norm=self._norm(beside.pre_norm),
            router_norm=self._norm(beside.router_norm),
            post_norm=self._norm(beside.post_norm),
            post_mlp_norm=self._norm(beside.post_mlp_norm),
        )
        self._parallel_experts.append(struct)
        return struct

    def _set_linear(self, place: _Place, linear: QuantLinear) -> None:
        """Fill a field of a C struct with a linear layer; if it is offloaded, record the field."""
        if isinstance(linear, OffloadedLinear):
            self._places[id(linear)] = place
        else:
            _put(place, linear)

    def _optional(self, vector: Tensor | None) -> int | None:
        """Keep a vector as float32 and return its address; None without one."""
        return None if vector is None else self._floats(vector)

    def _delta_net(self, net: DeltaNet) -> RecurrenceStruct:
        """Describe a gated delta net: its weights, and offsets in projected rows."""
        shape, grouped = net.spec.state, net.spec.output.grouped_heads
        keys, inner = shape.num_key_heads * shape.key_dim, shape.num_heads * shape.value_dim
        return RecurrenceStruct(
            conv=self._convolution(net.conv, None),
            decay_rate=self._floats(net.rate),
            dt_bias=self._floats(net.dt_bias),
            norm=self._floats(net.norm.weight.repeat(shape.num_heads)),
            shape=shape_struct(shape),
            state_index=self._num_states,
            tiled_key_heads=0 if grouped is None else grouped[0],
            norm_group_size=shape.value_dim,
            is_delta=True,
            width=shape.channels + inner,
            conv_offset=0,
            gate_offset=shape.channels,
            query_offset=0,
            key_offset=keys,
            value_offset=2 * keys,
            has_own_dt=True,
            dt_width=2 * shape.num_heads,
            dt_offset=shape.num_heads,
            max_dt=math.inf,
            eps=net.norm.eps,
        )

    def _mamba(self, mamba: Mamba2) -> RecurrenceStruct:
        """Describe a Mamba-2 mixer: its weights, and offsets in projected rows."""
        shape, norm = mamba.spec.state, mamba.norm
        inner, width = shape.num_heads * shape.value_dim, shape.num_key_heads * shape.key_dim
        total = inner + shape.channels + shape.num_heads
        return RecurrenceStruct(
            conv=self._convolution(mamba.conv, mamba.conv_bias),
            decay_rate=self._floats(mamba.rate),
            dt_bias=self._floats(mamba.dt_bias),
            skip=self._floats(mamba.skip),
            norm=None if norm is None else self._floats(norm.weight),
            input_scale=self._optional(mamba.factors),
            shape=shape_struct(shape),
            state_index=self._num_states,
            norm_group_size=inner // shape.num_key_heads,
            is_gated_before_norm=not mamba.spec.norm_before_gate or norm is None,
            width=total,
            conv_offset=inner,
            gate_offset=0,
            query_offset=inner + width,
            key_offset=inner,
            value_offset=0,
            dt_width=total,
            dt_offset=inner + shape.channels,
            min_dt=mamba.spec.time_step_min,
            max_dt=mamba.spec.time_step_max,
            eps=0.0 if norm is None else norm.eps,
        )

    def _convolution(self, weight: Tensor, bias: Tensor | None) -> ConvolutionStruct:
        """Describe a convolution. weight: [channels, width]"""
        return ConvolutionStruct(self._floats(weight.t()), self._optional(bias), *weight.shape)

    def _norm(self, norm: RmsNorm | None, factor: float = 1.0) -> int | None:
        """Weight of a norm whose output is multiplied by a factor."""
        if norm is None:
            return None
        return self._floats(norm.weight if factor == 1 else norm.weight * factor)

    def _part_norm(self, weight: Tensor | None, after_rope: bool = False) -> HeadNormStruct:
        """Describe a norm of queries, keys or values; an empty structure without a weight."""
        if weight is None:
            return HeadNormStruct()
        return HeadNormStruct(self._floats(weight), len(weight), after_rope)

    def _floats(self, vector: Tensor) -> int:
        """Keep a vector as float32, and return its address."""
        self._kept.append(vector.float().contiguous())
        return self._kept[-1].data_ptr()


def describe_experts(
    experts: ExpertMlps,
    set_linear: Callable[[_Place, QuantLinear], None],
    floats: Callable[[Tensor | None], int | None],
) -> tuple[ExpertsStruct, ctypes.Array[LinearStruct], ctypes.Array[LinearStruct]]:
    """Describe experts, their router and their shared expert.

    Args:
        experts: The experts.
        set_linear: Sets a linear layer's structure.
        floats: Returns the address of a vector as float32, which its owner keeps.

    Returns:
        The structure, and two arrays that it points to.
    """
    routing = experts.spec.routing
    array_of = LinearStruct * routing.num_experts
    struct, gate_ups, downs = ExpertsStruct(), array_of(), array_of()
    set_linear((struct, "router"), experts.router)
    for number, mlp in enumerate(experts.mlps):
        set_linear((gate_ups, number), mlp.gate_up)
        set_linear((downs, number), mlp.down)
    if experts.shared is not None:
        set_linear((struct, "shared_gate_up"), experts.shared.gate_up)
        set_linear((struct, "shared_down"), experts.shared.down)
        struct.shared_mlp = _shape_of(experts.shared.spec)
    if experts.shared_gate is not None:
        set_linear((struct, "shared_gate"), experts.shared_gate)
    struct.gate_ups, struct.downs = addressof(gate_ups), addressof(downs)
    struct.router_bias, struct.expert_scales = floats(experts.bias), floats(experts.scales)
    struct.mlp, struct.scoring = _shape_of(experts.spec.experts), ScoringCode[routing.scoring.name]
    struct.num_experts = routing.num_experts
    struct.num_experts_per_tok = routing.num_experts_per_tok
    struct.norm_topk_prob, struct.sum_eps = routing.norm_topk_prob, SUM_EPS
    struct.routed_scaling_factor = routing.routed_scaling_factor
    widths = (one.packed_width for one in linears_of(experts) if isinstance(one, NativeLinear))
    struct.packed_width = max(widths, default=0)  # from disk they come without adapters
    return struct, gate_ups, downs


class NativeExperts:
    """Experts in host memory, computed by the library alone; see `HostMlp`."""

    def __init__(
        self, library: ctypes.CDLL, experts: ExpertMlps, config: ModelConfig, workers: Workers
    ) -> None:
        """Describe experts to the library.

        Args:
            library: The compiled library.
            experts: Experts that it can compute.
            config: Configuration of the model.
            workers: Threads that compute.
        """
        self._library, self._workers, self._hidden = library, workers, config.hidden_size
        self._linears = list(linears_of(experts))  # they own the weights
        self._kept: list[Tensor] = []
        self._struct, *self._arrays = describe_experts(experts, _put, self._floats)
        self._activation = _activation_struct(config.activation)
        self._scratch = torch.empty(0)

    @staticmethod
    def can_compute(experts: ExpertMlps, config: ModelConfig) -> bool:
        """Whether the library can compute experts."""
        is_compiled = all(isinstance(linear, NativeLinear) for linear in linears_of(experts))
        return is_compiled and fits_lanes(config.hidden_size, experts.spec.experts.width)

    def __call__(self, x: Tensor, active: Active, routed: Tensor | None) -> Tensor:
        """[n, hidden] → [n, hidden], both float32.

        Args:
            x: Hidden states of the rows. [n, hidden]
            active: Not needed: the library has its own activation.
            routed: Input of the router; None for `x`. [n, hidden]
        """
        rows, read = x.contiguous(), (x if routed is None else routed).contiguous()
        count, experts, y = len(rows), addressof(self._struct), torch.empty_like(rows)
        needed = self._library.experts_scratch(experts, self._hidden, count)
        if needed > len(self._scratch):
            self._scratch = torch.empty(needed)
        pool = self._workers.decoding.awake()
        self._library.run_experts(
            *(pool, experts, addressof(self._activation), self._hidden, rows.data_ptr()),
            *(read.data_ptr(), count, self._scratch.data_ptr(), y.data_ptr()),
        )
        return y

    def _floats(self, vector: Tensor | None) -> int | None:
        """Keep a vector as float32 and return its address; None without one."""
        if vector is None:
            return None
        self._kept.append(vector.float().contiguous())
        return self._kept[-1].data_ptr()


def set_embedding(struct: DecoderStruct | HeadsStruct | PathHeadStruct, vectors: Tensor) -> None:
    """Set the embedding table of the next call. float32 or bfloat16 [any, hidden]"""
    struct.embedding = vectors.data_ptr()
    struct.embedding_is_bf16 = vectors.dtype == torch.bfloat16


def set_input(struct: DecoderStruct, entering: Tensor) -> None:
    """Replace a decoder's embedding table by its input rows. float32 [..., hidden]"""
    set_embedding(struct, entering)
    struct.embedding_multiplier, struct.per_layer_projection = 1.0, None


def native_decoder(model: Decoder, precision: Precision) -> NativeDecoder | None:
    """Return the structures of a decoder, or None if the compiled step doesn't support it."""
    library, offloaded = native_library(), offloaded_layers(model)
    per_layer = model.per_layer
    fits = (
        precision.cache_format in ("", "q8_0")
        and not precision.attended
        and precision.device.type == "cpu"
        and precision.compute in DTYPES
        and model.embedding.dtype in DTYPES
        and why_not(model.config) is None
        and all(isinstance(linear, NativeLinear | OffloadedLinear) for linear in model.linears)
        and (per_layer is None or isinstance(per_layer.projection, NativeLinear))
        and (offloaded is None or offloaded.types == {NativeLinear})
    )
    return NativeDecoder(library, model) if library is not None and fits else None


def _activation_struct(spec: ActivationSpec) -> ActivationStruct:
    """Describe an activation."""
    return ActivationStruct(ActivationCode[spec.kind.name], spec.swiglu_limit, spec.gate_multiplier)


def _shape_of(mlp: MlpSpec) -> MlpShapeStruct:
    """Describe the sizes of an MLP."""
    return MlpShapeStruct(mlp.width, mlp.width * mlp.has_gate)


def _residual_multiplier(blocks: Sequence[BlockSpec]) -> float:
    """Multiplier of residuals, which is the same in all blocks."""
    (multiplier,) = {block.residual_multiplier for block in blocks} or {1.0}
    return multiplier


def _put(place: _Place, linear: QuantLinear) -> None:
    """Copy the structure of a linear layer to a place."""
    owner, key = place
    if isinstance(key, int):
        assert isinstance(owner, ctypes.Array)
        owner[key] = _struct(linear)
    else:
        setattr(owner, key, _struct(linear))


def _struct(linear: QuantLinear) -> LinearStruct:
    """Return the structure of a linear layer that the library can compute."""
    assert isinstance(linear, NativeLinear)  # else there is no NativeDecoder
    return linear.struct
