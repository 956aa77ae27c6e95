"""A block as plain data, for a runner that computes it by other means than torch's operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from medusa_core.models.experts import ExpertMlps
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.norm import RmsNorm
from medusa_core.models.quant.layout import QuantLinear


@dataclass(frozen=True, slots=True)
class PositionTable:
    """What positions do to queries and keys.

    Attributes:
        turns: The rotation of every pair at every position. [positions, head_dim / 2], complex
        growth: What queries are multiplied with besides, or None. [positions]
    """

    turns: Tensor
    growth: Tensor | None = None


@dataclass(frozen=True, slots=True)
class PlainTokens:
    """What makes, with a token's own rows of a table, its vectors for all layers.

    Attributes:
        projection: Of what enters the first layer. → [layers · width]
        norm: Weight of the norm of each layer's share of it. [width]
        width: Numbers for one layer.
    """

    projection: QuantLinear
    norm: Tensor
    width: int


@dataclass(frozen=True, slots=True)
class PlainConvolution:
    """A short convolution of each channel by itself.

    Attributes:
        weight: That of the row itself is the last. [channels, width]
        bias: [channels], or None.
    """

    weight: Tensor
    bias: Tensor | None


@dataclass(frozen=True, slots=True)
class ProjectedRow:
    """Where the parts of a recurrent layer's rows begin.

    Attributes:
        width: Numbers of a row behind `qkv`.
        inputs: Of the convolution, in that row.
        gate: Of what heads read, in that row.
        queries: Among the convolution's channels.
        keys: Likewise.
        values: Likewise.
        steps: Time steps in the row that they are in: a row behind `gates` where the block has
            that projection, else the same row.
        steps_width: Numbers of that row.
    """

    width: int
    inputs: int
    gate: int
    queries: int
    keys: int
    values: int
    steps: int
    steps_width: int


@dataclass(frozen=True, slots=True)
class PlainRecurrence:
    """A gated delta net, or a state space; see recurrence.h.

    Attributes:
        shape: Sizes of its state.
        place: Among the layers with states.
        row: Where the parts of its rows begin.
        convolution: Of what becomes queries, keys and values.
        rate: How fast each head forgets, below 0. [heads]
        step_bias: Of each head's time step. [heads]
        skip: Of a state space: how much of a value is read beside the state. [heads]. None: it is
            a delta net, and what β are made of begins the row with the time steps.
        norm: Weight of the norm of what is read, or None. [heads · value_dim]
        together: Numbers that are normalised together.
        eps: Of the norm.
        factors: What a row behind `qkv` is multiplied with, or None. [width]
        gates_first: What is read passes through its gate before it is normalised.
        least_step: The shortest time step.
        most_step: The longest.
        tiles: Key heads, where `output` reads one head of each, then the next; else 0.
    """

    shape: StateShape
    place: int
    row: ProjectedRow
    convolution: PlainConvolution
    rate: Tensor
    step_bias: Tensor
    skip: Tensor | None
    norm: Tensor | None
    together: int
    eps: float
    factors: Tensor | None = None
    gates_first: bool = False
    least_step: float = 0.0
    most_step: float = math.inf
    tiles: int = 0


@dataclass(frozen=True, slots=True)
class PlainBlock:
    """One block; what is None, it doesn't have.

    Attributes:
        linears: `qkv`, projections to queries, keys and values; `output`, that behind attention;
            `gate_up` and `down` of the MLP, if there is one; and `token_gate` and
            `token_projection` where tokens bring something to each layer. A block may be an MLP
            alone.
        norms: Before attention, behind it, before the MLP, behind it.
        q_norm: Weight of a norm of queries, of as many numbers as are normalised together.
        k_norm: Of keys, likewise.
        table: Which of `Decoder.position_tables` turns queries and keys.
        query_scale: What queries are multiplied with.
        window: Tokens that a row sees, itself among them.
        attention_cap: Scores s of attention become cap · tanh(s / cap).
        num_kv_heads: Heads of keys, and of values.
        head_dim: Numbers of a head.
        inner: Numbers between the two halves of the MLP; 0 without it.
        has_gate: Else what `gate_up` gives is its own gate.
        experts: What rows pass through in its place, or beside it.
        sinks: Scores of attention that stand for no row. [q heads]
        norms_turned: Queries and keys are normalised behind the turn, not before it.
        v_norm: Of values, as `q_norm`.
        token_norm: Of what `token_projection` makes.
        shares_rows: It attends to an earlier layer's rows, and projects to queries alone.
        keys_are_values: There is no projection to values: they are what that to keys gives.
        scale: What leaves it is multiplied with.
        mixer_scale: What attention adds, or what stands in its place, is multiplied with.
        mlp_scale: So is what the MLP adds.
        beside: A block whose first half reads what this one's reads, and is added with it.
        is_gated: Behind queries, keys and values `qkv` gives gates of what attention gives.
        recurrence: What stands in the place of attention, its rows behind `qkv`.
        convolution: What stands in the place of attention; `qkv` then projects to its two gates and
            its input: the first gate, the second, the input. See `lfm2_decoder`.
    """

    linears: Mapping[str, QuantLinear]
    norms: tuple[RmsNorm | None, RmsNorm | None, RmsNorm | None, RmsNorm | None]
    q_norm: Tensor | None
    k_norm: Tensor | None
    table: int | None
    query_scale: float
    window: int | None
    attention_cap: float | None
    num_kv_heads: int
    head_dim: int
    inner: int
    has_gate: bool = True
    experts: ExpertMlps | None = None
    sinks: Tensor | None = None
    norms_turned: bool = False
    v_norm: Tensor | None = None
    token_norm: Tensor | None = None
    shares_rows: bool = False
    keys_are_values: bool = False
    scale: float = 1.0
    mixer_scale: float = 1.0
    mlp_scale: float = 1.0
    beside: PlainBlock | None = None
    is_gated: bool = False
    recurrence: PlainRecurrence | None = None
    convolution: PlainConvolution | None = None
