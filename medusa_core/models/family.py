"""What an architecture family is: the parts in which it differs from its relatives."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models import families
from medusa_core.system.registry import Registry

if TYPE_CHECKING:  # a plan needs no torch, and a config knows its family
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.decoder import Decoder
    from medusa_core.models.parts import BlockParts


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

    @property
    def is_usual(self) -> bool:
        """Has it only what Llama and its near relatives have, which the compiled step knows?"""
        usual = Traits(
            qkv_bias=self.qkv_bias,
            output_bias=self.output_bias,
            mlp_bias=self.mlp_bias,
            qk_norm=self.qk_norm,
            window=self.window,
            is_tied=self.is_tied,
        )
        return self == usual


_MOST_LAYERS = 1 << 10


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """A registered family.

    Attributes:
        name: `model_type` in its `config.json`.
        traits: What a `config.json` of it says.
        decoder: Imports and gives the decoder of a family that traits don't describe; None for one
            that follows them. The compiled step declines what isn't usual.
        parts: The parts of its block of that number, if traits don't describe them.
        as_usual: A `config.json` of it with the usual names for what it calls otherwise; may refuse
            what can't be run.
    """

    name: str
    traits: Callable[[Mapping[str, Any]], Traits]
    decoder: Callable[[], type[Decoder]] | None = None
    parts: Callable[[ModelConfig, int], BlockParts] | None = None
    as_usual: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


@cache
def family_registry() -> Registry[FamilySpec]:
    """All families."""
    return Registry(families, "model family", FamilySpec)


_RECURRENT = "some of their layers carry a state that can't be taken back when drafts are rejected"
_SHARED = "some of their layers share keys and values"
# Well-known types that can't be run here: why, and what to take instead.
_REFUSED = {
    **dict.fromkeys(("qwen3_5", "qwen3_5_text", "qwen3_next"), (_RECURRENT, "Choose Qwen3.")),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma3n"), (_SHARED, "Choose Gemma 3.")),
    **dict.fromkeys(
        ("mamba", "mamba2", "falcon_mamba", "jamba", "rwkv"), (_RECURRENT, "Choose Llama.")
    ),
}


def find_family(model_type: str) -> FamilySpec:
    """The family of a `model_type`.

    Raises:
        ModelError: It isn't supported.
    """
    for spec in family_registry().specs:
        if spec.name == model_type:
            return spec
    why, instead = _REFUSED.get(model_type, ("", ""))
    if why:
        raise ModelError(f"Models of type {model_type} aren't supported: {why}.", instead)
    raise ModelError(
        f"Models of type {reprlib.repr(model_type or 'unknown')} aren't supported.",
        f"Supported are {', '.join(family_registry().names)}: Llama, Vicuna, TinyLlama, Yi, "
        "Mistral, Qwen2, Qwen3, Gemma 2 and 3, OLMo 2 and 3, Granite, SmolLM3 and their relatives.",
    )


def layer_windows(raw: Mapping[str, Any], layers: Sequence[str]) -> tuple[int | None, ...]:
    """Of every layer its window, by the kinds that a `config.json` gives them."""
    window = sliding_window(raw)
    return tuple(window if kind == "sliding_attention" else None for kind in layers)


def layer_kinds(raw: Mapping[str, Any], pattern: int, default: int = 0) -> tuple[str, ...]:
    """The kinds of all layers; where a `config.json` doesn't say, each `pattern`-th sees all.

    Raises:
        ModelError: They aren't one for each layer.
    """
    count = raw.get("num_hidden_layers", default)
    count = count if isinstance(count, int) and 0 < count <= _MOST_LAYERS else 0
    kinds = raw.get("layer_types")
    if kinds is None:
        every = raw.get("sliding_window_pattern", raw.get("_sliding_window_pattern", pattern))
        every = every if isinstance(every, int) and every > 0 else pattern
        return tuple(
            "full_attention" if (index + 1) % every == 0 else "sliding_attention"
            for index in range(count)
        )
    known = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != count or any(k not in known for k in kinds):
        raise ModelError(
            "config.json: layer_types isn't a list of full_attention and sliding_attention.",
            "Layers of other kinds, such as recurrent ones, aren't supported.",
        )
    return tuple(kinds)


def whole(raw: Mapping[str, Any], key: str, most: int, default: int) -> int:
    """A whole number from 1 on of a `config.json`; null and nothing mean the default.

    Raises:
        ModelError: It is something else.
    """
    value = raw.get(key)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise ModelError(
            f"config.json: {key} is {reprlib.repr(value)}, not a whole number from 1 to {most:,}.",
            "Download config.json again.",
        )
    return value


def positive(raw: Mapping[str, Any], key: str, default: float | None) -> float | None:
    """A positive number of a `config.json`; null and nothing mean the default.

    Raises:
        ModelError: It is something else.
    """
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e12:
        raise ModelError(
            f"config.json: {key} is {reprlib.repr(value)}.", "Download config.json again."
        )
    return float(value)


def local_theta(raw: Mapping[str, Any], default: float | None) -> float | None:
    """Base of the rotary frequencies of layers with a window, in new `config.json` files."""
    parameters = raw.get("rope_parameters")
    local = parameters.get("sliding_attention") if isinstance(parameters, Mapping) else None
    return positive(local, "rope_theta", default) if isinstance(local, Mapping) else default


def sliding_window(raw: Mapping[str, Any]) -> int | None:
    """The window of a `config.json`; null and nothing mean none."""
    window = raw.get("sliding_window")
    if window is None:
        return None
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ModelError(
            f"config.json: sliding_window is {reprlib.repr(window)}.", "Download config.json again."
        )
    return window
