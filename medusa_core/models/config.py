"""Configuration of a target model, parsed from `config.json` and validated."""

from __future__ import annotations

import math
import re
import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.messages import Advice
from medusa_core.models.advice import read_advice
from medusa_core.models.architecture import (
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_INTERMEDIATE,
    MAX_LAYERS,
    MAX_TOKENS,
    ArchConfig,
    LocalRope,
    PerLayerEmbeddings,
    arch_registry,
    find_arch,
    positive,
    unknown_family,
    whole,
)
from medusa_core.models.blocks.spec import (
    EACH_EXPERT,
    SILU,
    Activation,
    ActivationSpec,
    BlockSpec,
    MlpSpec,
    MoeSpec,
)
from medusa_core.models.checkpoints.packing import Packing
from medusa_core.models.layer_shapes import (
    KvShape,
    LayerShape,
    NoShape,
    StateShape,
    recurrent_part,
    rows_of,
)
from medusa_core.models.quant.choice import (
    NO_TYPES,
    StoredTypes,
)
from medusa_core.models.stored import stored_registry

_MOST_CONTEXT = 1 << 24
_MOST_EOS = 1 << 10
_MAX_STATE = 1 << 24  # numbers; the largest published have 4 million
_OUTER = ("eos_token_id", "tie_word_embeddings", "quantization_config")
_EXPERT = re.compile(r"\.experts\.\d+\.")
_SENSES = ("vision_config", "audio_config")
_GATED = (Activation.SILU, Activation.GELU, Activation.GELU_TANH)
_ROPE_KINDS = ("default", "linear", "llama3", "yarn", "longrope", "factors")


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary position embedding.

    Attributes:
        theta: Base of the frequencies.
        kind: `default`, `linear`, `llama3`, `yarn`, `longrope` or `factors`.
        factor: Divisor of the frequencies that are scaled.
        low_freq_factor: llama3 only: pairs with fewer rotations within the original context are
            scaled by the whole `factor`.
        high_freq_factor: llama3 only: pairs with more rotations aren't scaled.
        original_context_tokens: Context length before scaling.
        factors: Divisor of each pair's frequency; of longrope within the original context.
        long_factors: longrope only: divisors beyond the original context.
        beta_fast: yarn only: pairs with more rotations in the original context aren't scaled.
        beta_slow: yarn only: pairs with fewer rotations are scaled by the whole `factor`.
        truncate: yarn only: round the bounds of the ramp between both to whole pairs.
        attention_factor: Scale of rotated queries and keys (yarn, longrope).
        partial_rotary_factor: Share of a head's dimensions, from the first on, that are rotated.
    """

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context_tokens: int = 8192
    factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 1.0
    partial_rotary_factor: float = 1.0


class HeadRows(NamedTuple):
    """Sizes of a query or key head, by which a projection's rows are reordered.

    Attributes:
        head_dim: Number of rows.
        rotary_dim: Number of rows, from the first on, that RoPE rotates.
    """

    head_dim: int
    rotary_dim: int

    @classmethod
    def of(cls, head_dim: int, rope: RopeConfig) -> HeadRows:
        """Return the sizes of heads with this RoPE."""
        return cls(head_dim, int(head_dim * rope.partial_rotary_factor))


@dataclass(frozen=True)  # without slots, for cached properties
class ModelConfig:
    """Validated configuration of a target model.

    Attributes:
        context_tokens: Longest context the model supports.
        rope: RoPE of layers with full attention.
        tie_embeddings: Whether the LM head is the token embedding.
        eos_token_ids: Tokens that end an answer.
        blocks: Specification of each block; empty for models that transformers runs.
        embedding_multiplier: Factor of token embeddings.
        logits_scaling: Divisor of logits.
        final_logit_softcapping: Logits s become cap · tanh(s / cap); None for no cap.
        norm_offset: Added to the stored weight of the final norm.
        llama_4_scaling_beta: Growth of the attention temperature: queries are multiplied by
            1 + β · log(1 + ⌊position / old context⌋); 0 for none.
        local_rope: RoPE of sliding-window layers; None if it is `rope`.
        per_layer_embeddings: Sizes of per-layer embeddings (Gemma 3n and 4).
        sliding_window: Window that all layers have, which limits the context.
        quantization: Weight format of the checkpoint's linear layers; of a GGUF file the block type
            that most have. Empty if they are unquantized.
        stored_types: Block type of each quantized matrix of a GGUF file, as (tensor name, type).
        file_type: GGUF's name of the mix of block types, such as Q4_K_M.
        packing: How weights are packed in groups; None if they aren't.
        advice: Sampling settings that the publisher recommends.
        is_multimodal: Whether the checkpoint has a vision tower, which isn't loaded.
        transformers_text: The whole `config.json` of a model that transformers runs.
        cached_layers: Shapes of each layer's cache, if there are no blocks to derive them from.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    context_tokens: int
    rope: RopeConfig
    tie_embeddings: bool
    eos_token_ids: tuple[int, ...]
    blocks: tuple[BlockSpec, ...] = ()
    activation: ActivationSpec = SILU
    embedding_multiplier: float = 1.0
    logits_scaling: float = 1.0
    final_logit_softcapping: float | None = None
    norm_offset: float = 0.0
    llama_4_scaling_beta: float = 0.0
    local_rope: LocalRope | None = None
    per_layer_embeddings: PerLayerEmbeddings | None = None
    sliding_window: int | None = None
    quantization: str = ""
    stored_types: tuple[tuple[str, str], ...] = ()
    file_type: str = ""
    packing: Packing | None = None
    advice: Advice | None = None
    is_multimodal: bool = False
    transformers_text: str = ""
    cached_layers: tuple[LayerShape, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.blocks) in (0, self.num_layers), "use with_blocks"

    @property
    def has_native_family(self) -> bool:
        """Whether `arch/` describes the model; otherwise transformers runs it."""
        return not self.transformers_text

    @property
    def default_context(self) -> int:
        """Default context length; of longrope the original one, with its short factors."""
        is_long = self.rope.kind == "longrope"
        old = self.rope.original_context_tokens if is_long else self.context_tokens
        return min(old, self.context_tokens)

    def with_blocks(self, blocks: Sequence[BlockSpec]) -> ModelConfig:
        """Return the configuration with other blocks, such as those of one pipeline stage."""
        return replace(self, num_layers=len(blocks), blocks=tuple(blocks))

    @cached_property
    def layers(self) -> tuple[LayerShape, ...]:
        """Shape of the KV rows or recurrent state that a session caches of each layer."""
        if self.blocks:
            return tuple(block.layer_shape for block in self.blocks)
        return self.cached_layers or (KvShape(self.num_kv_heads, self.head_dim),) * self.num_layers

    @cached_property
    def state_layers(self) -> tuple[StateShape, ...]:
        """Shapes of the recurrent states, in the order of their layers; all are equal."""
        return tuple(state for shape in self.layers if (state := recurrent_part(shape)))

    def mlp_width(self, layer: int) -> int:
        """Return the width of a layer's dense MLP."""
        dense = self.blocks[layer].mlp if self.blocks else None
        return dense.width if isinstance(dense, MlpSpec) else self.intermediate_size

    @property
    def windows(self) -> tuple[int | None, ...]:
        """Sliding window of each layer; None for full attention or a layer without attention."""
        found = (block.attention for block in self.blocks)
        return tuple(None if one is None else one.sliding_window for one in found)

    @property
    def is_llama_like(self) -> bool:
        """Whether every block is Llama's: pre-norm, full attention, a gated MLP, no multipliers."""
        model = (self.embedding_multiplier, self.logits_scaling, self.activation)
        return (
            bool(self.blocks)
            and model == (1.0, 1.0, SILU)
            and not self.llama_4_scaling_beta
            and self.final_logit_softcapping is None
            and all(block.is_llama_like for block in set(self.blocks))
        )

    @property
    def moe(self) -> MoeSpec | None:
        """MoE specification of the first MoE layer; None in dense models."""
        return next((block.moe for block in self.blocks if block.moe is not None), None)

    @property
    def head_rows(self) -> HeadRows:
        """Sizes of a query or key head."""
        return HeadRows.of(self.head_dim, self.rope)

    @property
    def stored(self) -> StoredTypes:
        """Block types of the files' matrices, by which weight formats are chosen."""
        if not self.holds_blocks:
            return NO_TYPES
        last = "model.embed_tokens.weight" if self.tie_embeddings else "lm_head.weight"
        card = "" if self.packing is None else self.packing.card
        lm_head = self.stored_type(last)
        multiplied = {kind for name, kind in self.stored_types if ".layers." in name}
        multiplied |= {lm_head} if lm_head else set()
        return StoredTypes(self.quantization, lm_head, card, frozenset(multiplied))

    @property
    def holds_blocks(self) -> bool:
        """Whether weights are block-quantized, or packed and converted to blocks."""
        return bool(self.stored_types) or self.packing is not None

    def stored_type(self, name: str) -> str:
        """Return the block type of a matrix; empty if it is unquantized."""
        if self.packing is not None:
            return self.packing.type_of(name)
        types = self._type_of_tensor
        return types.get(name) or types.get(_EXPERT.sub(f".experts.{EACH_EXPERT}.", name), "")

    @cached_property
    def _type_of_tensor(self) -> dict[str, str]:
        """Block types by tensor name; a field would make the configuration unhashable."""
        return dict(self.stored_types)

    @cached_property
    def row_sizes(self) -> tuple[int, ...]:
        """Input widths of all matrix products of a forward pass."""
        shapes = (rows_of(shape) for shape in self.layers)
        found = {shape.head_dim for shape in shapes if shape is not None}
        found |= {mlp.width for block in self.blocks for mlp in block.dense_mlps}
        found |= {block.moe.experts.width for block in self.blocks if block.moe is not None}
        if self.per_layer_embeddings is not None:
            found.add(self.per_layer_embeddings.width)
        return self.hidden_size, *sorted(found)


def parse_config(
    raw: Mapping[str, Any],
    generation: Mapping[str, Any],
    stored_types: Mapping[str, str] | None = None,
) -> ModelConfig:
    """Parse and validate a model's configuration.

    Args:
        raw: Content of `config.json`.
        generation: Content of `generation_config.json`.
        stored_types: Block types of a GGUF file's quantized matrices by tensor name.

    Raises:
        ModelError: The model isn't supported, or a value is invalid.
    """
    is_multimodal = isinstance(raw.get("vision_config"), Mapping)
    full, raw = raw, text_part(raw)
    model_type = _text(raw.get("model_type", ""))
    if model_type not in arch_registry().names:
        return _through_transformers(model_type, full, generation)
    arch = find_arch(model_type)
    raw = arch.normalized(raw)
    rope, hidden_size = _read_rope(raw), whole(raw, "hidden_size", MAX_HIDDEN)
    num_heads = whole(raw, "num_attention_heads", MAX_HEADS)
    head_dim = whole(raw, "head_dim", MAX_HEADS, hidden_size // num_heads)
    settings = ArchConfig(
        raw,
        hidden_size=hidden_size,
        intermediate_size=whole(raw, "intermediate_size", MAX_INTERMEDIATE),
        num_layers=whole(raw, "num_hidden_layers", MAX_LAYERS),
        num_heads=num_heads,
        num_kv_heads=whole(raw, "num_key_value_heads", MAX_HEADS, num_heads),
        head_dim=head_dim,
        rotary_dim=HeadRows.of(head_dim, rope).rotary_dim,
        vocab_size=whole(raw, "vocab_size", MAX_TOKENS),
    )
    model, blocks, packing = arch.model(settings), arch.blocks(settings), _read_quantization(raw)
    model.setdefault("activation", _activation(raw))
    if len(blocks) != settings.num_layers:
        raise ModelError(
            tr(
                "config.json: {0} layers are described, and there are {1}.",
                len(blocks),
                settings.num_layers,
            ),
            "Download config.json again.",
        )
    context = whole(raw, "max_position_embeddings", _MOST_CONTEXT, 2048)
    config = ModelConfig(
        advice=read_advice(generation),
        is_multimodal=is_multimodal,
        model_type=arch.name,
        vocab_size=settings.vocab_size,
        hidden_size=hidden_size,
        intermediate_size=settings.intermediate_size,
        num_layers=settings.num_layers,
        num_heads=num_heads,
        num_kv_heads=settings.num_kv_heads,
        head_dim=head_dim,
        rms_norm_eps=_number(raw, "rms_norm_eps", 1e-6),
        context_tokens=min(context, model.get("sliding_window") or context),
        rope=rope,
        tie_embeddings=bool(raw.get("tie_word_embeddings", False)),
        blocks=tuple(blocks),
        eos_token_ids=_read_eos(raw, generation),
        quantization=_most_common_type(stored_types or {}) or (packing.kind if packing else ""),
        packing=packing,
        stored_types=tuple(sorted((stored_types or {}).items())),
        file_type=_text(raw.get("file_type", "")),
        **model,
    )
    _check(config, raw)
    return config


def _activation(raw: Mapping[str, Any]) -> ActivationSpec:
    """Return the activation that `config.json` names; SiLU if it names none."""
    named = raw.get("hidden_activation", raw.get("hidden_act"))
    return next((ActivationSpec(kind) for kind in _GATED if kind.value == named), SILU)


def _most_common_type(stored_types: Mapping[str, str]) -> str:
    """Return the block type that most matrices of layers have; empty without any."""
    counted = Counter(kind for name, kind in stored_types.items() if ".layers." in name)
    return counted.most_common(1)[0][0] if counted else ""


def _through_transformers(
    model_type: str, raw: Mapping[str, Any], generation: Mapping[str, Any]
) -> ModelConfig:
    """Return the configuration of a model that transformers runs.

    Raises:
        ModelError: transformers doesn't run it, or a value is invalid.
    """
    from medusa_core.models.through_transformers.known import read_sizes, why_not_transformers

    if why := why_not_transformers(raw):
        raise unknown_family(model_type, why)
    sizes = read_sizes(raw)
    return ModelConfig(
        **sizes,
        rms_norm_eps=1e-6,
        rope=RopeConfig(),
        eos_token_ids=_read_eos(raw, generation),
        advice=read_advice(generation),
    )


def text_part(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the text model's configuration of a multimodal `config.json`, else all of it."""
    text = raw.get("text_config")
    if not isinstance(text, Mapping) or not raw.keys() & _SENSES:
        return raw
    outer = {name: raw[name] for name in _OUTER if name in raw and name not in text}
    return {**text, **outer}


def _check_layers(config: ModelConfig) -> None:
    """Check that caches and routers support the layers."""
    if len(set(config.state_layers)) > 1:
        raise ModelError(
            "Recurrent layers of different sizes aren't supported.", "Choose another model."
        )
    for shape in config.state_layers[:1]:
        if shape.state_size > _MAX_STATE:
            raise ModelError(
                tr(
                    "config.json: a layer's state has {0:,} numbers; no model's is so large.",
                    shape.state_size,
                ),
                "Download config.json again.",
            )
    if all(isinstance(shape, NoShape) for shape in config.layers):
        raise ModelError(
            "A model without attention and recurrent layers isn't supported.",
            "Choose another model.",
        )
    routings = (block.moe.routing for block in config.blocks if block.moe is not None)
    for routing in routings:
        if routing.num_experts_per_tok > routing.num_experts:
            raise ModelError(
                tr(
                    "config.json: each token takes {0} of {1} experts.",
                    routing.num_experts_per_tok,
                    routing.num_experts,
                ),
                "Download config.json again.",
            )


def _check(config: ModelConfig, raw: Mapping[str, Any]) -> None:
    """Check sizes that depend on each other, and the activation."""
    _check_layers(config)
    if config.num_heads % config.num_kv_heads:
        raise ModelError(
            tr(
                "{0} attention heads can't share {1} KV heads evenly.",
                config.num_heads,
                config.num_kv_heads,
            ),
            "Download config.json again.",
        )
    pairs = config.head_rows.rotary_dim // 2
    for factors in (config.rope.factors, config.rope.long_factors):
        if factors and len(factors) != pairs:
            raise ModelError(
                tr("Rope scaling has {0} factors for {1} pairs.", len(factors), pairs),
                "Download config.json again.",
            )
    if config.head_dim % 2 or config.head_rows.rotary_dim % 2:
        raise ModelError(
            tr("head_dim {0} is odd; rotary embedding needs pairs.", config.head_dim),
            "Download config.json again.",
        )
    wanted = config.activation.kind.value
    if (activation := raw.get("hidden_activation", raw.get("hidden_act", wanted))) != wanted:
        raise ModelError(
            tr("The activation {0} isn't supported; only {1} is.", _shown(activation), wanted),
            "Choose another model, such as a Llama.",
        )


def _read_rope(raw: Mapping[str, Any]) -> RopeConfig:
    """Parse RoPE: `rope_theta` and `rope_scaling`, or `rope_parameters` of newer files."""
    scaling = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if isinstance(scaling, Mapping) and isinstance(scaling.get("full_attention"), Mapping):
        scaling = scaling["full_attention"]  # `local_rope` is that of sliding-window layers
    if not isinstance(scaling, Mapping):
        raise ModelError("config.json: rope_scaling is no object.", "Download the file again.")
    kind = _text(scaling.get("rope_type", scaling.get("type", "default")))
    kind = {"dynamic": "default", "su": "longrope"}.get(
        kind, kind
    )  # dynamic NTK changes nothing within the context
    if kind not in _ROPE_KINDS:
        raise ModelError(
            tr("Rope scaling of type {0} isn't supported.", repr(kind)),
            "Supported are default, linear, dynamic, llama3, yarn and longrope.",
        )
    old = scaling.get("original_max_position_embeddings") or raw.get(
        "original_max_position_embeddings"
    )
    context = whole(raw, "max_position_embeddings", _MOST_CONTEXT, 2048)
    old = whole({"original": old}, "original", _MOST_CONTEXT) if old else 8192
    factor = _number(scaling, "factor", context / old if kind in ("yarn", "longrope") else 1.0)
    is_long = kind == "longrope"
    theta = _number(scaling, "rope_theta", _number(raw, "rope_theta", 10000.0))
    _check_rope(kind, theta, old, scaling)
    return RopeConfig(
        theta=theta,
        kind=kind,
        factor=factor,
        low_freq_factor=_number(scaling, "low_freq_factor", 1.0),
        high_freq_factor=_number(scaling, "high_freq_factor", 4.0),
        original_context_tokens=old,
        factors=_factors(scaling, "short_factor" if is_long else "factors")
        if kind in ("factors", "longrope")
        else (),
        long_factors=_factors(scaling, "long_factor") if is_long else (),
        beta_fast=_number(scaling, "beta_fast", 32.0),
        beta_slow=_number(scaling, "beta_slow", 1.0),
        truncate=bool(scaling.get("truncate", True)),
        attention_factor=_attention_factor(kind, scaling, factor, old),
        partial_rotary_factor=min(
            1.0,
            _number(scaling, "partial_rotary_factor", _number(raw, "partial_rotary_factor", 1.0)),
        ),
    )


def _check_rope(kind: str, theta: float, old: int, scaling: Mapping[str, Any]) -> None:
    """Refuse values that would lead to a division by zero or an infinite frequency."""
    of_yarn = [_number(scaling, name, 1.0) for name in ("beta_fast", "beta_slow")]
    low, high = (
        _number(scaling, f"{name}_freq_factor", default)
        for name, default in (("low", 1), ("high", 4))
    )
    if (
        (kind in ("yarn", "longrope") and old < 2)
        or (kind == "yarn" and (theta <= 1 or not all(1e-6 <= beta <= 1e6 for beta in of_yarn)))
        or (kind == "llama3" and low == high)
    ):
        raise ModelError(
            tr("Rope scaling of type {0} has numbers that make no sense.", kind),
            "Download config.json again.",
        )


def _attention_factor(kind: str, scaling: Mapping[str, Any], factor: float, old: int) -> float:
    """Return the scale of rotated queries and keys, which keeps the entropy of attention."""
    if kind not in ("yarn", "longrope") or factor <= 1:
        return 1.0
    if scaling.get("attention_factor") is not None:
        return _number(scaling, "attention_factor", 1.0)
    if kind == "longrope":
        return math.sqrt(1 + math.log(factor) / math.log(old))

    def mscale(scale: float) -> float:
        """Return YaRN's attention factor."""
        return 0.1 * scale * math.log(factor) + 1

    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return mscale(_number(scaling, "mscale", 1)) / mscale(_number(scaling, "mscale_all_dim", 1))
    return mscale(1.0)


def _factors(scaling: Mapping[str, Any], key: str) -> tuple[float, ...]:
    """Read a list of positive numbers, one per pair."""
    factors = scaling.get(key)
    are_numbers = isinstance(factors, list) and all(
        isinstance(factor, int | float) and not isinstance(factor, bool) and 1e-6 < factor < 1e31
        for factor in factors
    )
    if not are_numbers or not isinstance(factors, list):
        raise ModelError("The factors of rope scaling aren't numbers.", "Download the file again.")
    return tuple(map(float, factors))


def _read_quantization(raw: Mapping[str, Any]) -> Packing | None:
    """Parse the `quantization_config` of a `config.json`; None if the weights are unquantized.

    Raises:
        ModelError: The quantization isn't supported.
    """
    quantization = raw.get("quantization_config")
    if not quantization:
        return None
    method = (
        quantization.get("quant_method", "bitsandbytes")
        if isinstance(quantization, Mapping)
        else quantization
    )
    for spec in stored_registry().specs:
        if spec.name == method and isinstance(quantization, Mapping):
            return spec.parse(quantization)
    raise ModelError(
        tr("The checkpoint is quantized already ({0}).", _text(method)),
        tr(
            "Of quantized ones {0} are supported: choose one of these, or the unquantized version "
            "of this model.",
            ", ".join(stored_registry().names),
        ),
    )


def _read_eos(raw: Mapping[str, Any], generation: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the EOS ids; `generation_config.json` often lists more than the other."""
    value = generation.get("eos_token_id", raw.get("eos_token_id"))
    ids = value if isinstance(value, list) else [] if value is None else [value]
    are_ids = all(isinstance(token, int) and not isinstance(token, bool) for token in ids)
    if not are_ids or len(ids) > _MOST_EOS:
        raise ModelError(
            tr("eos_token_id {0} is neither a number nor a short list of numbers.", _shown(value)),
            "Download the model again.",
        )
    return tuple(ids)


def _number(raw: Mapping[str, Any], key: str, default: float) -> float:
    """Read a positive number."""
    value = positive(raw, key, default)
    return default if value is None else value


def _text(value: object) -> str:
    """Return a string unchanged, anything else abbreviated for a message."""
    return value if isinstance(value, str) else _shown(value)


def _shown(value: object) -> str:
    """Abbreviate a value of any length or depth for a message."""
    return reprlib.repr(value)
