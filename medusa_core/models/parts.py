"""The parts that a target's weights are made of: what a loader fills, and what a plan counts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Required, TypedDict

from medusa_core.models.architecture import find_arch
from medusa_core.models.config import ModelConfig
from medusa_core.models.traits import NormPlaces

if TYPE_CHECKING:
    from torch import Tensor  # a plan needs no torch

    from medusa_core.models.config import HeadRows
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.quant.format import QuantSpec


@dataclass(frozen=True, slots=True)
class PartPiece:
    """Rows of a linear part that are one tensor in a checkpoint.

    Attributes:
        name: The tensor's name, without `.weight`.
        rows: Its rows.
        turns: Its rows belong to heads that rotary embedding turns.
        first: Which of the tensor's rows is its first.
        total: Rows of the whole tensor; 0 where it is the whole.
        head_dim: Of its heads, all of which are turned as a whole; 0 where they are the model's
            usual ones.
        stride: From one run of its rows to the next; 0 for a single run.
    """

    name: str
    rows: int
    turns: bool = False
    first: int = 0
    total: int = 0
    head_dim: int = 0
    stride: int = 0

    @property
    def of(self) -> int:
        """Rows of the tensor that it is taken of."""
        return self.total or self.rows

    def take(self, tensor: Tensor) -> Tensor:
        """Its rows of the tensor. [of, ...] → [rows, ...]"""
        if not self.total:
            return tensor
        if not self.stride:
            return tensor[self.first : self.first + self.rows]
        num_runs = self.total // self.stride
        runs = tensor.view(num_runs, self.stride, *tensor.shape[1:])
        return runs[:, self.first : self.first + self.rows // num_runs].flatten(0, 1)

    def in_pairs(self, rows: Tensor, usual: HeadRows) -> Tensor:
        """Its rows as `interleave_rows` orders them, if positions turn them. [rows, ...]"""
        from medusa_core.models.rope import interleave_rows

        if not self.turns:
            return rows
        size, turned = (self.head_dim, self.head_dim) if self.head_dim else usual
        return interleave_rows(rows, size, turned)


@dataclass(frozen=True, slots=True)
class LinearPart:
    """A linear layer; projections of the same input are one.

    Attributes:
        name: What it is called here, such as `layers.0.qkv`.
        pieces: Tensors of a checkpoint, one below the other.
        columns: Columns of all of them.
        has_bias: Each piece has a bias.
        stays_dense: It is kept as plain numbers in any weight format.
        tiled: Where its columns are of one head of each group, then of each group's next: how many
            groups and heads; None for one group after the other, as what it reads.
    """

    name: str
    pieces: tuple[PartPiece, ...]
    columns: int
    has_bias: bool = False
    stays_dense: bool = False
    tiled: tuple[int, int] | None = None

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def is_one_tensor(self) -> bool:
        """Whether it is a whole tensor of a checkpoint, its rows in their order."""
        return len(self.pieces) == 1 and not self.pieces[0].turns and not self.pieces[0].total

    def within(self, name: str) -> LinearPart:
        """The part whose pieces are rows of one tensor, one below the other."""
        pieces, first = [], 0
        for piece in self.pieces:
            pieces.append(PartPiece(name, piece.rows, piece.turns, first, self.rows))
            first += piece.rows
        return replace(self, pieces=tuple(pieces))

    @property
    def in_pairs(self) -> LinearPart:
        """The part whose heads are stored as the neighbouring pairs that are turned."""
        return replace(self, pieces=tuple(replace(piece, turns=False) for piece in self.pieces))

    def fitting(self, wanted: QuantSpec, formats: PartFormats) -> QuantSpec:
        """The weight format that it takes where one is wanted."""
        wanted = formats.dense if self.stays_dense else wanted
        return formats.fitting(wanted, self.rows, self.columns)


@dataclass(frozen=True, slots=True)
class MlpParts:
    """The linear parts of an MLP.

    Attributes:
        gate_up: Its gate and what that gates; one of both where it has no gate.
        down: Its last projection.
    """

    gate_up: LinearPart
    down: LinearPart

    @property
    def has_gate(self) -> bool:
        """Whether there is a gate."""
        return self.gate_up.rows > self.down.columns

    @property
    def linears(self) -> tuple[LinearPart, ...]:
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
    qkv: LinearPart | None
    output: LinearPart | None
    mlp: MlpParts | None
    router: LinearPart | None = None
    experts: tuple[MlpParts, ...] = ()
    more: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    mixer: tuple[LinearPart, ...] = ()

    @property
    def linears(self) -> tuple[LinearPart, ...]:
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
        PartPiece(f"{attention}.q_proj", inner, turns=True),
        PartPiece(f"{attention}.k_proj", kv, turns=True),
        PartPiece(f"{attention}.v_proj", kv),
    )
    output = (PartPiece(f"{attention}.o_proj", hidden),)
    norms = dict.fromkeys((f"{prefix}.{name}" for name in norm_names(config)), hidden)
    q_norm, k_norm = (f"{attention}.{name}" for name in qk_norm_names(config))
    if traits.qk_norm:
        norms |= dict.fromkeys((q_norm, k_norm), config.head_dim)
    if traits.wide_qk_norm:
        norms |= {q_norm: inner, k_norm: kv}
    return BlockParts(
        prefix=prefix,
        vectors=norms,
        qkv=LinearPart(f"{name}.qkv", qkv, hidden, traits.qkv_bias),
        output=LinearPart(f"{name}.output", output, inner, traits.output_bias),
        more={f"{attention}.sinks": (config.num_heads,)} if traits.has_sinks else {},
        **_mlps(config, index),
    )


class _Mlps(TypedDict, total=False):
    mlp: Required[MlpParts | None]
    router: LinearPart
    experts: tuple[MlpParts, ...]


def _mlps(config: ModelConfig, index: int) -> _Mlps:
    """The one MLP of a block, or its experts and what chooses them."""
    name, mlp = f"layers.{index}", f"model.layers.{index}.mlp"
    experts = config.traits.experts
    if experts is None or index in experts.plain_layers:
        return {"mlp": mlp_parts(config, name, mlp, config.mlp_width(index))}
    router = (PartPiece(f"{mlp}.{experts.router}", experts.count),)
    has_bias, width = config.traits.mlp_bias, config.hidden_size
    return {
        "mlp": None,
        "router": LinearPart(f"{name}.router", router, width, has_bias, stays_dense=True),
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
    gate_up = tuple(PartPiece(f"{prefix}.{part}_proj", width) for part in ("gate", "up"))
    down = (PartPiece(f"{prefix}.down_proj", hidden),)
    return MlpParts(
        LinearPart(f"{name}.gate_up", gate_up, hidden, has_bias),
        LinearPart(f"{name}.down", down, width, has_bias),
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


def lm_head_part(config: ModelConfig) -> LinearPart:
    """The projection to the vocabulary: the embedding again where the two are tied."""
    name = EMBEDDING if config.tie_embeddings else "lm_head"
    return LinearPart("lm_head", (PartPiece(name, config.vocab_size),), config.hidden_size)


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


def in_tiles(heads: Tensor, tiled: tuple[int, int]) -> Tensor:
    """Heads that stand by key head, one of each key head and then the next.

    Args:
        heads: [n, heads · value_dim]
        tiled: How many key heads and heads.
    """
    groups, count = tiled
    return heads.view(len(heads), groups, count // groups, -1).transpose(1, 2).flatten(1)


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
