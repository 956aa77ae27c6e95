"""The parts that a target's weights are made of: what a loader fills, and what a plan counts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Required, TypedDict

from medusa_core.models.architecture import find_arch
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.config import ModelConfig
from medusa_core.models.traits import NormPlaces


@dataclass(frozen=True, slots=True)
class MlpParts:
    """The linear parts of an MLP.

    Attributes:
        gate_up: Its gate and what that gates; one of both where it has no gate.
        down: Its last projection.
    """

    gate_up: LinearSpec
    down: LinearSpec

    @property
    def has_gate(self) -> bool:
        """Whether there is a gate."""
        return self.gate_up.rows > self.down.columns

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        return (self.gate_up, self.down)


@dataclass(frozen=True, slots=True)
class BlockParts:
    """The linear parts of one transformer block, and its vectors.

    Attributes:
        prefix: What the names of its tensors begin with.
        vectors: Sizes of its norms, by name.
        more: Shapes of its other tensors, by their whole names.
        qkv: Projections to queries, keys and values; None without attention.
        output: The projection behind attention, or behind what stands in its place; None for
            neither.
        mixer: What a family has besides these two.
        mlp: What every row passes through; None where it passes through experts.
        router: Chooses experts; None without them.
        experts: They; empty without.
    """

    prefix: str
    vectors: dict[str, int]
    qkv: LinearSpec | None
    output: LinearSpec | None
    mlp: MlpParts | None
    router: LinearSpec | None = None
    experts: tuple[MlpParts, ...] = ()
    more: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    mixer: tuple[LinearSpec, ...] = ()

    @property
    def linears(self) -> tuple[LinearSpec, ...]:
        mlps = self.experts if self.mlp is None else (self.mlp, *self.experts)
        single = (self.qkv, self.output, self.router)
        present = (part for part in single if part is not None)
        return (*present, *self.mixer, *(part for mlp in mlps for part in mlp.linears))


def block_parts(config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block, as its family has them."""
    own = find_arch(config.model_type).parts
    return shared_parts(config, index) if own is None else own(config, index)


def shared_parts(config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block of Llama and its relatives."""
    prefix, name = f"model.layers.{index}", f"layers.{index}"
    attention = f"{prefix}.self_attn"
    hidden, traits = config.hidden_size, config.traits
    inner, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    qkv = (
        TensorRows(f"{attention}.q_proj", inner, rotates=True),
        TensorRows(f"{attention}.k_proj", kv, rotates=True),
        TensorRows(f"{attention}.v_proj", kv),
    )
    output = (TensorRows(f"{attention}.o_proj", hidden),)
    norms = dict.fromkeys((f"{prefix}.{name}" for name in norm_names(config)), hidden)
    q_norm, k_norm = (f"{attention}.{name}" for name in qk_norm_names(config))
    if traits.qk_norm:
        norms |= dict.fromkeys((q_norm, k_norm), config.head_dim)
    if traits.wide_qk_norm:
        norms |= {q_norm: inner, k_norm: kv}
    return BlockParts(
        prefix=prefix,
        vectors=norms,
        qkv=LinearSpec(f"{name}.qkv", qkv, hidden, traits.qkv_bias),
        output=LinearSpec(f"{name}.output", output, inner, traits.output_bias),
        more={f"{attention}.sinks": (config.num_heads,)} if traits.has_sinks else {},
        **_mlps(config, index),
    )


class _Mlps(TypedDict, total=False):
    mlp: Required[MlpParts | None]
    router: LinearSpec
    experts: tuple[MlpParts, ...]


def _mlps(config: ModelConfig, index: int) -> _Mlps:
    """The one MLP of a block, or its experts and what chooses them."""
    name, mlp = f"layers.{index}", f"model.layers.{index}.mlp"
    experts = config.traits.experts
    if experts is None or index in experts.plain_layers:
        return {"mlp": mlp_parts(config, name, mlp, config.mlp_width(index))}
    router = (TensorRows(f"{mlp}.{experts.router}", experts.count),)
    has_bias, width = config.traits.mlp_bias, config.hidden_size
    return {
        "mlp": None,
        "router": LinearSpec(f"{name}.router", router, width, has_bias, stays_dense=True),
        "experts": tuple(
            mlp_parts(config, f"{name}.experts.{number}", f"{mlp}.experts.{number}", experts.width)
            for number in range(experts.count)
        ),
    }


def mlp_parts(config: ModelConfig, name: str, prefix: str, width: int) -> MlpParts:
    """An MLP of so many numbers between its two halves.

    Args:
        config: Of the target.
        name: What it is called here.
        prefix: What the names of its tensors begin with.
        width: How wide it is.
    """
    hidden, has_bias = config.hidden_size, config.traits.mlp_bias
    gate_up = tuple(TensorRows(f"{prefix}.{part}_proj", width) for part in ("gate", "up"))
    down = (TensorRows(f"{prefix}.down_proj", hidden),)
    return MlpParts(
        LinearSpec(f"{name}.gate_up", gate_up, hidden, has_bias),
        LinearSpec(f"{name}.down", down, width, has_bias),
    )


def norm_names(config: ModelConfig) -> tuple[str, ...]:
    """Names of a block's norms, in the order in which rows meet them."""
    attention, mlp = "post_attention_layernorm", "post_feedforward_layernorm"
    names: tuple[str, ...] = ("input_layernorm", attention)
    if config.traits.norm_places is NormPlaces.BEHIND:
        names = (attention, mlp)
    elif config.traits.norm_places is NormPlaces.AROUND:
        names = ("input_layernorm", attention, "pre_feedforward_layernorm", mlp)
    return _in_family(config, names)


def qk_norm_names(config: ModelConfig) -> tuple[str, ...]:
    """Names of the norms of queries and of keys."""
    return _in_family(config, ("q_norm", "k_norm"))


def _in_family(config: ModelConfig, names: tuple[str, ...]) -> tuple[str, ...]:
    """What a family calls its norms, by their usual names."""
    own = find_arch(config.model_type).names
    return tuple(own.get(name, name) for name in names)


def lm_head_part(config: ModelConfig) -> LinearSpec:
    """The projection to the vocabulary: the embedding again where the two are tied."""
    name = EMBEDDING if config.tie_embeddings else "lm_head"
    return LinearSpec("lm_head", (TensorRows(name, config.vocab_size),), config.hidden_size)


def per_layer_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """What makes per-layer embeddings beside their table: shapes by the tensors' whole names."""
    of = config.traits.per_layer
    if of is None:
        return {}
    total = config.num_layers * of.width
    return {PER_LAYER_PROJECTION: (total, config.hidden_size), PER_LAYER_NORM: (of.width,)}


def num_linear_parameters(config: ModelConfig) -> int:
    """Weights of the linear parts of all blocks."""
    if not config.is_ours:
        from medusa_core.models.through_transformers.sizes import sizes_of  # asks transformers

        return sum(rows * columns for rows, columns in sizes_of(config).matrices)
    return sum(
        count * sum(part.rows * part.columns for part in block.linears)
        for block, count in kinds_of_blocks(config)
    )


def num_parameters(config: ModelConfig) -> int:
    """Parameters of a model, tied ones counted once; no file is read."""
    if not config.is_ours:
        from medusa_core.models.through_transformers.sizes import sizes_of  # asks transformers

        return sizes_of(config).num_parameters
    hidden, per_layer = config.hidden_size, config.traits.per_layer
    num_tables = 1 if config.tie_embeddings else 2
    total = num_tables * config.vocab_size * hidden + hidden  # with the last norm
    for block, count in kinds_of_blocks(config):
        biases = sum(part.rows for part in block.linears if part.has_bias)
        others = sum(math.prod(shape) for shape in block.more.values())
        total += count * (sum(block.vectors.values()) + biases + others)
    if per_layer is not None:
        total += per_layer.vocab_size * config.num_layers * per_layer.width
    total += sum(math.prod(shape) for shape in per_layer_tensors(config).values())
    return total + num_linear_parameters(config)


def kinds_of_blocks(config: ModelConfig) -> Iterator[tuple[BlockParts, int]]:
    """One block of every kind, and how many there are of it."""
    experts, layers = config.traits.experts, config.layers
    plain = frozenset[int]() if experts is None else experts.plain_layers
    alike: dict[object, list[int]] = defaultdict(list)
    for index, shape in enumerate(layers):
        has_values = index not in config.traits.keys_are_values
        alike[shape, config.mlp_width(index), index in plain, has_values].append(index)
    for indices in alike.values():
        yield block_parts(config, indices[0]), len(indices)


EMBEDDING = "model.embed_tokens"
FINAL_NORM = "model.norm"
PER_LAYER_TABLE = "model.embed_tokens_per_layer"
PER_LAYER_PROJECTION = "model.per_layer_model_projection.weight"
PER_LAYER_NORM = "model.per_layer_projection_norm.weight"
