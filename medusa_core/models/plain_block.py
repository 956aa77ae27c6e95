"""A block as plain data, for a runner that computes it by other means than torch's operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from medusa_core.models.experts import ExpertMlps
from medusa_core.models.norm import RmsNorm
from medusa_core.models.quant.layout import QuantLinear

if TYPE_CHECKING:
    from medusa_core.models.delta_net_decoder import DeltaNetMixer


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
    """A short convolution between two gates; see `lfm2_decoder`.

    Attributes:
        weight: That of the row itself is the last. [channels, width]
        bias: [channels], or None.
    """

    weight: Tensor
    bias: Tensor | None


@dataclass(frozen=True, slots=True)
class PlainBlock:
    """One block; what is None, it doesn't have.

    Attributes:
        linears: `qkv`, projections to queries, keys and values; `output`, that behind attention;
            `gate_up` and `down` of the MLP, if there is one; and `token_gate` and
            `token_projection` where tokens bring something to each layer.
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
        experts: What rows pass through in its place, or beside it.
        sinks: Scores of attention that stand for no row. [q heads]
        norms_turned: Queries and keys are normalised behind the turn, not before it.
        v_norm: Of values, as `q_norm`.
        token_norm: Of what `token_projection` makes.
        shares_rows: It attends to an earlier layer's rows, and projects to queries alone.
        keys_are_values: There is no projection to values: they are what that to keys gives.
        scale: What leaves it is multiplied with.
        is_gated: Behind queries, keys and values `qkv` gives gates of what attention gives.
        net: What stands in the place of attention, its rows behind `qkv`.
        net_place: Among the layers with states.
        convolution: What stands in the place of attention; `qkv` then projects to its two gates and
            its input: the first gate, the second, the input.
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
    experts: ExpertMlps | None = None
    sinks: Tensor | None = None
    norms_turned: bool = False
    v_norm: Tensor | None = None
    token_norm: Tensor | None = None
    shares_rows: bool = False
    keys_are_values: bool = False
    scale: float = 1.0
    is_gated: bool = False
    net: DeltaNetMixer | None = None
    net_place: int = 0
    convolution: PlainConvolution | None = None
