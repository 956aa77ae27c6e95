"""Blocks of every architecture as specs: their settings, and the checkpoint tensors that they read.

Names of tensors are relative to their block (`self_attn.q_proj`), so that equal layers share one
spec; `tensors_at` adds `model.layers.N.`. In an expert's names `EACH_EXPERT` stands for its number.
Nothing here needs torch: plan, hub and policies count with specs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial

from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.layer_shapes import (
    HybridShape,
    KvShape,
    LayerShape,
    NoShape,
    SharedRows,
    StateShape,
)

EACH_EXPERT = "*"


class Activation(str, Enum):
    """Activation of MLPs, by its name in `config.json` (`hidden_act`)."""

    SILU = "silu"
    GELU = "gelu"
    GELU_TANH = "gelu_pytorch_tanh"
    CLAMPED_SWIGLU = "clamped_swiglu"  # GPT-OSS's config.json calls it silu
    RELU2 = "relu2"


@dataclass(frozen=True, slots=True)
class ActivationSpec:
    """Activation of a model's MLPs.

    Attributes:
        kind: The function.
        swiglu_limit: Bound of both halves of `CLAMPED_SWIGLU`.
        gate_multiplier: Factor of the gate before the activation (Falcon-H1).
    """

    kind: Activation = Activation.SILU
    swiglu_limit: float = 0.0
    gate_multiplier: float = 1.0


SILU = ActivationSpec()


@dataclass(frozen=True, slots=True)
class NormSpec:
    """An RMS norm.

    Attributes:
        name: Its tensor, without `.weight`.
        size: Size of its weight.
        offset: Number that is added to the stored weight; Gemma stores w − 1.
    """

    name: str
    size: int
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class NormsSpec:
    """Norms of a block; None for what it doesn't have.

    Attributes:
        pre: Before the mixers.
        post: Of the mixers' output.
        pre_mlp: Before the MLP.
        post_mlp: Of the MLP's output.
    """

    pre: NormSpec | None = None
    post: NormSpec | None = None
    pre_mlp: NormSpec | None = None
    post_mlp: NormSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerSpec:
    """What mixes the rows of a sequence.

    Attributes:
        input_multiplier: Factor of its input.
        output_multiplier: Factor of its output.
    """

    input_multiplier: float = 1.0
    output_multiplier: float = 1.0


@dataclass(frozen=True, slots=True)
class AttentionSpec(MixerSpec):
    """Softmax attention.

    Attributes:
        qkv: Queries, own keys, own values, and the output gate if `is_gated`.
        output: Output projection.
        num_heads: Query heads.
        num_kv_heads: Key and value heads.
        head_dim: Width of a head.
        rotary_dim: Width of a head that rotates, from its beginning on.
        scale: Factor of the scores; 0 for 1/√head_dim.
        rope: Index of the rotary embedding: 0 for the model's, 1 for its local one; None for none
            (`no_rope_layers`).
        sliding_window: Window in tokens, the row itself included; None for full attention.
        attn_logit_softcapping: Scores s become cap · tanh(s / cap); None for none.
        sinks: Tensor with a score per query head that belongs to no row; empty for none.
        q_norm: Norm of queries: of each head, or of all at once if it is as wide as all.
        k_norm: Norm of keys.
        norm_after_rope: Both apply after the rotation.
        v_norm: Values are normalized per head, without a weight.
        kv_layer: Earlier layer whose keys and values are read; None for its own.
        k_eq_v: V equals K before norm and rotation; there is no v_proj.
        is_gated: The result is multiplied by the sigmoid of a projection of the same input.
        unread: Tensors of the checkpoint that no pass reads.
    """

    qkv: LinearSpec
    output: LinearSpec
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rotary_dim: int
    scale: float = 0.0
    rope: int | None = 0
    sliding_window: int | None = None
    attn_logit_softcapping: float | None = None
    sinks: str = ""
    q_norm: NormSpec | None = None
    k_norm: NormSpec | None = None
    norm_after_rope: bool = False
    v_norm: bool = False
    kv_layer: int | None = None
    k_eq_v: bool = False
    is_gated: bool = False
    unread: tuple[str, ...] = ()

    @property
    def inner(self) -> int:
        """Width of the attention result."""
        return self.num_heads * self.head_dim

    @property
    def owned_kv_heads(self) -> int:
        """Key heads that it projects to; 0 where it reads an earlier layer's."""
        return self.num_kv_heads if self.kv_layer is None else 0

    @property
    def softmax_scale(self) -> float:
        """Factor of the scores."""
        return self.scale or self.head_dim**-0.5

    @property
    def cached(self) -> KvShape:
        """Keys and values that it reads."""
        return KvShape(self.num_kv_heads, self.head_dim)

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers of the mixer."""
        return (self.qkv, self.output)

    @property
    def norms(self) -> tuple[NormSpec, ...]:
        """Norms of queries and keys, as far as there are any."""
        return tuple(norm for norm in (self.q_norm, self.k_norm) if norm is not None)

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the other tensors by name."""
        return {self.sinks: (self.num_heads,)} if self.sinks else {}


@dataclass(frozen=True, slots=True)
class GatedDeltaNetSpec(MixerSpec):
    """Gated delta net (Yang et al. 2024).

    Attributes:
        prefix: What names of its tensors begin with.
        state: Sizes of its state.
        in_proj: Queries and keys (per key head), values and output gates (per head).
        gates: Per head the logit of β, then the input of the decay.
        output: Output projection.
    """

    prefix: str
    state: StateShape
    in_proj: LinearSpec
    gates: LinearSpec
    output: LinearSpec

    @property
    def norm(self) -> NormSpec:
        """Norm of each head's readout, whose weight has no offset in any architecture."""
        return NormSpec(f"{self.prefix}.norm", self.state.value_dim)

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers of the mixer."""
        return (self.output, self.in_proj, self.gates)

    @property
    def norms(self) -> tuple[NormSpec, ...]:
        """The norm of the readout."""
        return (self.norm,)

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the other tensors by name."""
        heads = (self.state.num_heads,)
        return {
            f"{self.prefix}.conv1d.weight": self.state.conv_shape,
            f"{self.prefix}.A_log": heads,
            f"{self.prefix}.dt_bias": heads,
        }


@dataclass(frozen=True, slots=True)
class Mamba2Spec(MixerSpec):
    """Mamba-2 layer (Dao and Gu 2024, section 7).

    Attributes:
        prefix: What names of its tensors begin with.
        state: Sizes of its state; a key head is one of its groups.
        in_proj: Gate, x, B, C and Δ.
        output: Output projection.
        has_conv_bias: Its convolution has a bias.
        has_norm: The result is normalized, each group on its own.
        norm_before_gate: The norm applies before the gate.
        multipliers: Factors of gate, x, B, C and Δ; empty for none.
        time_step_min: Smallest time step Δ.
        time_step_max: Largest time step Δ.
    """

    prefix: str
    state: StateShape
    in_proj: LinearSpec
    output: LinearSpec
    has_conv_bias: bool = True
    has_norm: bool = True
    norm_before_gate: bool = False
    multipliers: tuple[float, ...] = ()
    time_step_min: float = 0.0
    time_step_max: float = math.inf

    @property
    def inner(self) -> int:
        """Width of x."""
        return self.state.num_heads * self.state.value_dim

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers of the mixer."""
        return (self.in_proj, self.output)

    @property
    def norms(self) -> tuple[NormSpec, ...]:
        """The norm before the output projection, if there is one."""
        return (NormSpec(f"{self.prefix}.norm", self.inner),) if self.has_norm else ()

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the other tensors by name."""
        heads = (self.state.num_heads,)
        found: dict[str, tuple[int, ...]] = {
            f"{self.prefix}.conv1d.weight": self.state.conv_shape,
            **dict.fromkeys((f"{self.prefix}.{one}" for one in ("A_log", "D", "dt_bias")), heads),
        }
        if self.has_conv_bias:
            found[f"{self.prefix}.conv1d.bias"] = (self.state.channels,)
        return found


@dataclass(frozen=True, slots=True)
class ShortConvolutionSpec(MixerSpec):
    """Gated short convolution (LFM2 technical report, Liquid AI 2025, section 2).

    Attributes:
        prefix: What names of its convolution's tensors begin with.
        state: Sizes of the convolution; the state itself is empty.
        in_proj: Projection to B, C and x.
        output: Output projection.
        has_bias: The convolution has a bias.
    """

    prefix: str
    state: StateShape
    in_proj: LinearSpec
    output: LinearSpec
    has_bias: bool = False

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers of the mixer."""
        return (self.output, self.in_proj)

    @property
    def norms(self) -> tuple[NormSpec, ...]:
        """No norms."""
        return ()

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the other tensors by name."""
        found: dict[str, tuple[int, ...]] = {f"{self.prefix}.weight": self.state.conv_shape}
        if self.has_bias:
            found[f"{self.prefix}.bias"] = (self.state.channels,)
        return found


Mixer = AttentionSpec | GatedDeltaNetSpec | Mamba2Spec | ShortConvolutionSpec


@dataclass(frozen=True, slots=True)
class MlpSpec:
    """An MLP.

    Attributes:
        gate_up: Gate and up projection; up alone without a gate.
        down: Down projection.
    """

    gate_up: LinearSpec
    down: LinearSpec

    @property
    def width(self) -> int:
        """`intermediate_size`."""
        return self.down.columns

    @property
    def has_gate(self) -> bool:
        """Whether there is a gate."""
        return self.gate_up.rows > self.width

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers of the MLP."""
        return (self.gate_up, self.down)

    def expert(self, number: int) -> MlpSpec:
        """Return one of a layer's experts, of the MLP that describes all of them."""
        return MlpSpec(
            *(part.renamed(lambda name: _numbered(name, number)) for part in self.linears)
        )


class Scoring(str, Enum):
    """How a router's logits become routing weights."""

    SOFTMAX = "softmax"  # over all experts
    TOPK_SOFTMAX = "softmax_after_topk"
    SIGMOID = "sigmoid"


@dataclass(frozen=True, slots=True)
class RoutingSpec:
    """How a row's experts are chosen.

    Attributes:
        num_experts: Experts of a layer.
        num_experts_per_tok: Experts of a row.
        scoring: How logits become weights.
        norm_topk_prob: Weights of the chosen experts are divided by their sum.
        routed_scaling_factor: Factor of the weights.
    """

    num_experts: int
    num_experts_per_tok: int
    scoring: Scoring = Scoring.SOFTMAX
    norm_topk_prob: bool = True
    routed_scaling_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class MoeSpec:
    """A mixture of experts.

    Attributes:
        routing: How experts are chosen.
        router: Router.
        experts: The experts, one for all: `EACH_EXPERT` in its names stands for a number.
        shared: Shared expert, which all rows pass through, or None.
        shared_gate: Projection whose sigmoid multiplies the shared expert's output, or None.
        router_bias: Tensor that is added to the weights for top-k only; empty for none.
        expert_scales: Tensor with a factor of each expert's weight; empty for none.
    """

    routing: RoutingSpec
    router: LinearSpec
    experts: MlpSpec
    shared: MlpSpec | None = None
    shared_gate: LinearSpec | None = None
    router_bias: str = ""
    expert_scales: str = ""

    @property
    def mlps(self) -> Iterator[MlpSpec]:
        """Yield the spec of each routed expert."""
        return map(self.experts.expert, range(self.routing.num_experts))

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers but for the experts' own."""
        gate = () if self.shared_gate is None else (self.shared_gate,)
        shared = () if self.shared is None else self.shared.linears
        return (self.router, *gate, *shared)

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the router's tensors by name."""
        names = (self.router_bias, self.expert_scales)
        return {name: (self.routing.num_experts,) for name in names if name}


@dataclass(frozen=True, slots=True)
class ParallelExpertsSpec:
    """Experts in parallel to the MLP (Gemma 4); both halves have norms of their own.

    Attributes:
        moe: The experts.
        pre_norm: Norm of their input.
        post_mlp_norm: Norm of the MLP's output.
        post_norm: Norm of the experts' output.
        router_scale: Tensor with the weight of the norm of the router's input. [hidden]
    """

    moe: MoeSpec
    pre_norm: NormSpec
    post_mlp_norm: NormSpec
    post_norm: NormSpec
    router_scale: str

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the tensors that aren't linear layers or norms by name."""
        return {self.router_scale: (self.pre_norm.size,), **self.moe.tensors}


@dataclass(frozen=True, slots=True)
class PerLayerGateSpec:
    """Gate by which a token's per-layer embedding enters a block (Gemma 3n and 4).

    Attributes:
        gate: Projection of the row.
        projection: Projection of the gated embedding.
        norm: Norm of that projection.
    """

    gate: LinearSpec
    projection: LinearSpec
    norm: NormSpec


@dataclass(frozen=True)  # without slots: its shape is computed once
class BlockSpec:
    """A block.

    Attributes:
        norms: Its norms.
        mixers: What mixes rows: they read the same rows, and their outputs are added. Empty for a
            block that is an MLP alone.
        mlp: MLP or experts, or None.
        parallel_experts: Experts in parallel to the MLP, or None.
        per_layer: Gate of per-layer embeddings, or None.
        residual_multiplier: Factor of both halves before they are added to the residual.
        mlp_multiplier: Factor of the MLP's output besides.
        layer_scalar: Tensor with a factor of the block's output; empty for none.
    """

    norms: NormsSpec
    mixers: tuple[Mixer, ...]
    mlp: MlpSpec | MoeSpec | None
    parallel_experts: ParallelExpertsSpec | None = None
    per_layer: PerLayerGateSpec | None = None
    residual_multiplier: float = 1.0
    mlp_multiplier: float = 1.0
    layer_scalar: str = ""

    def __hash__(self) -> int:
        # Configurations are keys of caches; a spec that has the same kinds of parts is compared.
        return hash((self.layer_shape, type(self.mlp)))

    @property
    def is_llama_like(self) -> bool:
        """Whether it is Llama's: norms before full attention and a gated MLP, no multipliers."""
        attention, own = self.attention, self.norms
        if attention is None or not isinstance(self.mlp, MlpSpec) or not self.mlp.has_gate:
            return False
        plain = AttentionSpec(
            *(attention.qkv, attention.output, attention.num_heads, attention.num_kv_heads),
            *(attention.head_dim, attention.rotary_dim),
            q_norm=attention.q_norm,
            k_norm=attention.k_norm,
        )
        per_head = all(
            norm.size == attention.head_dim and not norm.offset for norm in attention.norms
        )
        norms = NormsSpec(pre=own.pre, pre_mlp=own.pre_mlp)
        return per_head and self == BlockSpec(norms, (plain,), self.mlp)

    @property
    def attention(self) -> AttentionSpec | None:
        """Its attention, if it has one."""
        return next((one for one in self.mixers if isinstance(one, AttentionSpec)), None)

    @property
    def state(self) -> StateShape | None:
        """Sizes of its recurrent state, if it has one."""
        states = (one.state for one in self.mixers if not isinstance(one, AttentionSpec))
        return next(states, None)

    @property
    def moe(self) -> MoeSpec | None:
        """Its experts, if it has some."""
        if self.parallel_experts is not None:
            return self.parallel_experts.moe
        return self.mlp if isinstance(self.mlp, MoeSpec) else None

    @property
    def dense_mlps(self) -> tuple[MlpSpec, ...]:
        """MLPs that all rows pass through."""
        dense = self.mlp.shared if isinstance(self.mlp, MoeSpec) else self.mlp
        return () if dense is None else (dense,)

    @property
    def host_linears(self) -> tuple[LinearSpec, ...]:
        """Linear layers that a processor may compute beside a card: experts, else the MLP."""
        moe = self.moe
        if moe is not None:
            return (moe.router, *(part for one in moe.mlps for part in one.linears))
        return () if self.mlp is None else tuple(self.mlp.linears)

    @cached_property
    def layer_shape(self) -> LayerShape:
        """Shape of what a session caches for this block: KV rows, a recurrent state, or both."""
        attention, state = self.attention, self.state
        if attention is None:
            return NoShape() if state is None else state
        if attention.kv_layer is not None:
            return SharedRows(attention.kv_layer)
        return attention.cached if state is None else HybridShape(attention.cached, state)

    @property
    def all_norms(self) -> Iterator[NormSpec]:
        """All norms that have a weight."""
        own = self.norms
        yield from (one for one in (own.pre, own.post, own.pre_mlp, own.post_mlp) if one)
        for mixer in self.mixers:
            yield from mixer.norms
        if (beside := self.parallel_experts) is not None:
            yield from (beside.pre_norm, beside.post_mlp_norm, beside.post_norm)
        if self.per_layer is not None:
            yield self.per_layer.norm

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes by full name of tensors that belong to neither linear layers nor norms."""
        found = {name: shape for one in self.mixers for name, shape in one.tensors.items()}
        if self.layer_scalar:
            found[self.layer_scalar] = (1,)
        for part in (self.parallel_experts, self.mlp):
            if isinstance(part, ParallelExpertsSpec | MoeSpec):
                found |= part.tensors
        return found

    @property
    def linears(self) -> Iterator[LinearSpec]:
        """Linear layers but for experts' own."""
        for mixer in self.mixers:
            yield from mixer.linears
        if self.parallel_experts is not None:
            yield from self.parallel_experts.moe.linears
        if self.per_layer is not None:
            yield from (self.per_layer.gate, self.per_layer.projection)
        if self.mlp is not None:
            yield from self.mlp.linears


@dataclass(frozen=True, slots=True)
class BlockTensors:
    """Tensors of one block, by their names in a checkpoint.

    Attributes:
        norms: Sizes of norms, by names without `.weight`.
        others: Shapes of other tensors, by whole names.
        linears: Linear layers, those of experts included.
        experts: Linear layers of experts.
    """

    norms: dict[str, int]
    others: dict[str, tuple[int, ...]]
    linears: tuple[LinearSpec, ...]
    experts: tuple[LinearSpec, ...] = field(default=())


def tensors_at(spec: BlockSpec, index: int) -> BlockTensors:
    """Return the tensors that a block reads where it is a certain layer."""
    prefix = f"model.layers.{index}."
    moe = spec.moe
    experts = () if moe is None else tuple(part for one in moe.mlps for part in one.linears)
    place = partial(linear_at, index=index)
    placed = tuple(map(place, experts))
    return BlockTensors(
        norms={prefix + norm.name: norm.size for norm in spec.all_norms},
        others={prefix + name: shape for name, shape in spec.tensors.items()},
        linears=(*map(place, spec.linears), *placed),
        experts=placed,
    )


def linear_at(part: LinearSpec, index: int) -> LinearSpec:
    """Return a linear layer of a block with its names in a checkpoint."""
    placed = part.renamed(lambda name: f"model.layers.{index}.{name}")
    return replace(placed, name=f"layers.{index}.{part.name}")


def _numbered(name: str, number: int) -> str:
    """Insert the index of an expert into a tensor name."""
    return name.replace(EACH_EXPERT, str(number))
