"""A block as plain data, for a runner that computes it by other means than torch's operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

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
class PlainBlock:
    """One block; what is None, it doesn't have.

    Attributes:
        qkv: Projections to queries, keys and values.
        output: The projection behind attention.
        gate_up: The MLP's fused projections.
        down: Its last one.
        norms: Before attention, behind it, before the MLP, behind it.
        q_norm: Weight of a norm of queries, of as many numbers as are normalised together.
        k_norm: Of keys, likewise.
        table: Which of `Decoder.position_tables` turns queries and keys.
        query_scale: What queries are multiplied with.
        window: Tokens that a row sees, itself among them.
        attention_cap: Scores s of attention become cap · tanh(s / cap).
        num_kv_heads: Heads of keys, and of values.
        head_dim: Numbers of a head.
        inner: Numbers between the two halves of the MLP.
        is_gated: Behind queries, keys and values `qkv` gives gates of what attention gives.
        net: What stands in the place of attention, its rows behind `qkv`.
        net_place: Among the layers with states.
    """

    qkv: QuantLinear
    output: QuantLinear
    gate_up: QuantLinear
    down: QuantLinear
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
    is_gated: bool = False
    net: DeltaNetMixer | None = None
    net_place: int = 0
