"""What one checkpoint has beyond what all families share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from medusa_core.models.layer_shapes import LayerShape


class NormPlaces(str, Enum):
    """Where a block's norms stand: before each of its two halves, behind them, or both."""

    BEFORE = "before"
    BEHIND = "behind"
    AROUND = "around"


class Activation(str, Enum):
    """What a gate passes through."""

    SILU = "silu"
    GELU_TANH = "gelu_pytorch_tanh"
    BOUNDED = "bounded"  # GPT-OSS calls it silu


@dataclass(frozen=True, slots=True)
class Experts:
    """MLPs of which each row passes through a few, chosen by a router.

    Attributes:
        count: All of a layer.
        chosen: How many a row passes through.
        width: Numbers between an expert's two halves.
        normalises: The chosen ones' shares add up to one.
        plain_layers: Layers that have one MLP instead.
        chooses_first: Shares are those among the chosen ones, not among all.
        router: What the router's tensor is called.
    """

    count: int
    chosen: int
    width: int
    normalises: bool = True
    plain_layers: frozenset[int] = frozenset()
    chooses_first: bool = False
    router: str = "gate"


@dataclass(frozen=True, slots=True)
class PerLayerEmbeddings:
    """A vector of each token for every layer, which enters it through a gate.

    Attributes:
        width: Numbers for one layer.
        vocab_size: Tokens that have such vectors.

    Source: Gemma 3n and 4 (Google 2025, 2026).
    """

    width: int
    vocab_size: int


@dataclass(frozen=True, slots=True)
class Traits:
    """What one checkpoint has beyond what all families share.

    Attributes:
        qkv_bias: Queries, keys and values have biases.
        output_bias: So has the projection behind attention.
        mlp_bias: So have the three projections of the MLP.
        qk_norm: Queries and keys are normalised per head before they are turned.
        window: Tokens that attention looks back on, in any layer; None for all. Within so many
            tokens the window shows everything, so longer contexts are not offered.
        wide_qk_norm: Queries and keys are normalised over all heads at once.
        norm_places: Where the norms stand.
        norm_offset: What is added to every norm's weight.
        activation: What a gate passes through.
        embedding_scale: What token vectors are multiplied with.
        residual_scale: What each half of a block is multiplied with before it is added.
        score_divisor: What the scores of the vocabulary are divided by.
        attention_scale: What queries times keys are multiplied with; None for 1/√head_dim.
        attention_cap: Attention's scores s become cap · tanh(s / cap); None for as they are.
        score_cap: So do those of the vocabulary.
        windows: Of every layer the tokens that attention looks back on, or None for all; empty
            where all layers look back on everything.
        local_theta: Base of the rotary frequencies of layers with a window; None for one base.
        scales_local: Layers with a window stretch positions as the others do.
        unturned: Layers whose queries and keys aren't turned by their position.
        is_tied: The projection to the vocabulary is the token vectors, where `config.json` says
            nothing.
        experts: What most layers have in the place of an MLP; None for one MLP.
        has_sinks: Every query head has a score of its own that takes attention from all rows.
        activation_bound: Of `Activation.BOUNDED`.
        query_growth: By this times log(1 + how often the old context fits before a position),
            queries grow; 0 for not at all.
        layers: What a session holds of each layer; empty where all hold keys and values alike.
        mlp_widths: Numbers between the two halves of each layer's MLP; empty where all are alike.
        per_layer: Vectors of tokens that enter at every layer; None for at the first alone.
        keys_are_values: Layers whose values are their keys' projection.
        normalises_values: Values are normalised per head, without a weight.
        scales_layers: What leaves a layer is multiplied with a number of its own.
    """

    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    window: int | None = None
    wide_qk_norm: bool = False
    norm_places: NormPlaces = NormPlaces.BEFORE
    norm_offset: float = 0.0
    activation: Activation = Activation.SILU
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    score_divisor: float = 1.0
    attention_scale: float | None = None
    attention_cap: float | None = None
    score_cap: float | None = None
    windows: tuple[int | None, ...] = ()
    local_theta: float | None = None
    scales_local: bool = True
    unturned: frozenset[int] = frozenset()
    is_tied: bool = False
    experts: Experts | None = None
    has_sinks: bool = False
    activation_bound: float = 0.0
    query_growth: float = 0.0
    layers: tuple[LayerShape, ...] = ()
    mlp_widths: tuple[int, ...] = ()
    per_layer: PerLayerEmbeddings | None = None
    keys_are_values: frozenset[int] = frozenset()
    normalises_values: bool = False
    scales_layers: bool = False

    @property
    def score_bounds(self) -> tuple[float, float]:
        """What scores of the vocabulary are divided by, and their cap; 0 for none."""
        return self.score_divisor, self.score_cap or 0.0

    @property
    def is_usual(self) -> bool:
        """Has it only what Llama and its near relatives have?"""
        usual = Traits(
            qkv_bias=self.qkv_bias,
            output_bias=self.output_bias,
            mlp_bias=self.mlp_bias,
            qk_norm=self.qk_norm,
            window=self.window,
            is_tied=self.is_tied,
        )
        return self == usual
