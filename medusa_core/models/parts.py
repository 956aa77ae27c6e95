"""The parts that a target's weights are made of: what a loader fills, and what a plan counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medusa_core.models.config import ModelConfig
from medusa_core.models.family import NormPlaces, find_family

if TYPE_CHECKING:
    from torch import Tensor  # a plan needs no torch


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a linear part that are one tensor in a checkpoint.

    Attributes:
        name: The tensor's name, without `.weight`.
        rows: Its rows.
        turns: Its rows belong to heads that rotary embedding turns.
        first: Which of the tensor's rows is its first.
        total: Rows of the whole tensor; 0 where it is the whole.
    """

    name: str
    rows: int
    turns: bool = False
    first: int = 0
    total: int = 0

    @property
    def of(self) -> int:
        """Rows of the tensor that it is taken of."""
        return self.total or self.rows

    def take(self, tensor: Tensor) -> Tensor:
        """Its rows of the tensor. [of, ...] → [rows, ...]"""
        return tensor[self.first : self.first + self.rows] if self.total else tensor


@dataclass(frozen=True, slots=True)
class LinearPart:
    """A linear layer; projections of the same input are one.

    Attributes:
        name: What it is called here, such as `layers.0.qkv`.
        pieces: Tensors of a checkpoint, one below the other.
        columns: Columns of all of them.
        has_bias: Each piece has a bias.
    """

    name: str
    pieces: tuple[Piece, ...]
    columns: int
    has_bias: bool = False

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.rows for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class BlockParts:
    """The linear parts of one transformer block, and its vectors.

    Attributes:
        prefix: What the names of its tensors begin with.
        vectors: Sizes of its norms, by name.
    """

    prefix: str
    vectors: dict[str, int]
    qkv: LinearPart
    output: LinearPart
    gate_up: LinearPart
    down: LinearPart

    @property
    def linears(self) -> tuple[LinearPart, ...]:
        return (self.qkv, self.output, self.gate_up, self.down)


def block_parts(config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block, as its family has them."""
    own = find_family(config.model_type).parts
    return shared_parts(config, index) if own is None else own(config, index)


def shared_parts(config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block of Llama and its relatives."""
    prefix, name = f"model.layers.{index}", f"layers.{index}"
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    hidden, traits = config.hidden_size, config.traits
    inner, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    qkv = (
        Piece(f"{attention}.q_proj", inner, turns=True),
        Piece(f"{attention}.k_proj", kv, turns=True),
        Piece(f"{attention}.v_proj", kv),
    )
    gate_up = tuple(Piece(f"{mlp}.{p}_proj", config.intermediate_size) for p in ("gate", "up"))
    output = (Piece(f"{attention}.o_proj", hidden),)
    down = (Piece(f"{mlp}.down_proj", hidden),)
    norms = dict.fromkeys((f"{prefix}.{name}" for name in norm_names(traits.norm_places)), hidden)
    if traits.qk_norm:
        norms |= dict.fromkeys((f"{attention}.{name}_norm" for name in ("q", "k")), config.head_dim)
    if traits.wide_qk_norm:
        norms |= {f"{attention}.q_norm": inner, f"{attention}.k_norm": kv}
    return BlockParts(
        prefix=prefix,
        vectors=norms,
        qkv=LinearPart(f"{name}.qkv", qkv, hidden, traits.qkv_bias),
        output=LinearPart(f"{name}.output", output, inner, traits.output_bias),
        gate_up=LinearPart(f"{name}.gate_up", gate_up, hidden, traits.mlp_bias),
        down=LinearPart(f"{name}.down", down, config.intermediate_size, traits.mlp_bias),
    )


def norm_names(places: NormPlaces) -> tuple[str, ...]:
    """Names of a block's norms, in the order in which rows meet them."""
    attention, mlp = "post_attention_layernorm", "post_feedforward_layernorm"
    if places is NormPlaces.BEHIND:
        return (attention, mlp)
    if places is NormPlaces.AROUND:
        return ("input_layernorm", attention, "pre_feedforward_layernorm", mlp)
    return ("input_layernorm", attention)


def lm_head_part(config: ModelConfig) -> LinearPart:
    """The projection to the vocabulary: the embedding again where the two are tied."""
    name = EMBEDDING if config.tie_embeddings else "lm_head"
    return LinearPart("lm_head", (Piece(name, config.vocab_size),), config.hidden_size)


def num_linear_parameters(config: ModelConfig) -> int:
    """Weights of the linear parts of all blocks, which are alike."""
    parts = block_parts(config, 0).linears
    return config.num_layers * sum(part.rows * part.columns for part in parts)


EMBEDDING = "model.embed_tokens"
FINAL_NORM = "model.norm"
