"""What one checkpoint has beyond what all families share."""

from __future__ import annotations

import math
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
    RELU2 = "relu2"


EACH_EXPERT = "*"  # stands for the number of an expert in a tensor's name


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
        is_sigmoid: Scores become shares one by one, by a sigmoid, not by a softmax over all.
        bias: What the tensor is called that is added to shares where experts are chosen, and only
            there; empty for none.
        scale: What shares are multiplied with at last.
        shared_width: Numbers between the two halves of what all rows pass through beside them; 0
            where nothing is, or the model says it.
    """

    count: int
    chosen: int
    width: int
    normalises: bool = True
    plain_layers: frozenset[int] = frozenset()
    chooses_first: bool = False
    router: str = "gate"
    is_sigmoid: bool = False
    bias: str = ""
    scale: float = 1.0
    shared_width: int = 0


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
class DeltaNet:
    """What gated delta nets have beyond the sizes of their state (Yang et al. 2024).

    Attributes:
        is_fused: Their projections are two tensors, each key head's rows together, as in
            Qwen3-Next; else they are four.
        tiled: Layers whose last projection reads one head of each key head, then the next, as
            llama.cpp stores them.
    """

    is_fused: bool = False
    tiled: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Mamba:
    """What Mamba-2 layers have beyond the sizes of their state (Dao and Gu 2024).

    Attributes:
        has_bias: The projection into a layer has a bias.
        has_out_bias: So has the one out of it.
        has_conv_bias: So has its convolution.
        has_norm: What a layer makes is normalised, each group on its own.
        gates_first: It passes through its gate before it is normalised.
        least_step: The shortest time step Δ.
        most_step: The longest.
        name: What a block calls it.
    """

    has_bias: bool = False
    has_out_bias: bool = False
    has_conv_bias: bool = True
    has_norm: bool = True
    gates_first: bool = True
    least_step: float = 0.0
    most_step: float = math.inf
    name: str = "mamba"


@dataclass(frozen=True, slots=True)
class Factors:
    """What Falcon-H1 multiplies within a block.

    Attributes:
        attention_in: What attention reads.
        attention_out: What it makes.
        mamba_in: What the Mamba layer beside it reads.
        mamba_out: What that makes.
        projected: What that reads once projected: gate, x, B, C and Δ.
        gate: Of the MLP.
        down: What the MLP makes.
    """

    attention_in: float = 1.0
    attention_out: float = 1.0
    mamba_in: float = 1.0
    mamba_out: float = 1.0
    projected: tuple[float, float, float, float, float] = (1.0, 1.0, 1.0, 1.0, 1.0)
    gate: float = 1.0
    down: float = 1.0


@dataclass(frozen=True, slots=True)
class Traits:
    """What one checkpoint has beyond what all families share.

    Attributes:
        qkv_bias: Queries, keys and values have biases.
        output_bias: So has the projection behind attention.
        mlp_bias: So have the three projections of the MLP.
        qk_norm: Queries and keys are normalised per head before they are turned.
        norms_turned: They are normalised behind it: a norm's weight meets turned numbers.
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
        conv_bias: A short convolution and the projections around it have biases.
        layers: What a session holds of each layer; empty where all hold keys and values alike.
        mlp_widths: Numbers between the two halves of each layer's MLP; empty where all are alike.
        per_layer: Vectors of tokens that enter at every layer; None for at the first alone.
        keys_are_values: Layers whose values are their keys' projection.
        normalises_values: Values are normalised per head, without a weight.
        scales_layers: What leaves a layer is multiplied with a number of its own.
        delta_net: What its layers with a state have; None without gated delta nets.
        mamba: What its layers with a state have; None without Mamba-2 layers.
        factors: What parts of a block are multiplied with; None for nothing.
        fuses_gate: An MLP's gate and up are rows of one tensor.
    """

    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    norms_turned: bool = False
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
    conv_bias: bool = False
    layers: tuple[LayerShape, ...] = ()
    mlp_widths: tuple[int, ...] = ()
    per_layer: PerLayerEmbeddings | None = None
    keys_are_values: frozenset[int] = frozenset()
    normalises_values: bool = False
    scales_layers: bool = False
    delta_net: DeltaNet | None = None
    mamba: Mamba | None = None
    factors: Factors | None = None
    fuses_gate: bool = False

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
