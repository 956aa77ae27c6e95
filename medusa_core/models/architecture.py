"""What describes an architecture, how its `config.json` is read, and the registry of `arch/`."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypedDict

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models import arch
from medusa_core.models.blocks.spec import ActivationSpec, BlockSpec, RoutingSpec, Scoring
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.json_file import is_whole
from medusa_core.system.registry import Registry

# Several times what the largest published models have; more is a damaged file.
MAX_LAYERS = 1 << 10
MAX_HEADS = 1 << 12
MAX_HIDDEN = 1 << 17
MAX_INTERMEDIATE = 1 << 19
MAX_EXPERTS = 1 << 12
MAX_TOKENS = 1 << 20
LEAST, MOST = 1e-30, 1e12  # numbers of a configuration; what is divided by them stays finite
AGAIN = tr("Download config.json again.")


class LocalRope(NamedTuple):
    """RoPE of sliding-window layers, where it differs from the model's.

    Attributes:
        theta: Base of its frequencies, which aren't scaled.
        head_dim: Width of the heads of these layers.
    """

    theta: float
    head_dim: int


class PerLayerEmbeddings(NamedTuple):
    """Sizes of per-layer embeddings (Gemma 3n and 4).

    Attributes:
        width: Width of one layer's embedding.
        vocab_size: Tokens that have one.
    """

    width: int
    vocab_size: int


class ModelFields(TypedDict, total=False):
    """Settings of a whole model that differ from Llama's; see `ModelConfig`."""

    activation: ActivationSpec
    embedding_multiplier: float
    logits_scaling: float
    final_logit_softcapping: float | None
    norm_offset: float
    llama_4_scaling_beta: float
    local_rope: LocalRope | None
    per_layer_embeddings: PerLayerEmbeddings | None
    sliding_window: int | None


@dataclass(frozen=True, slots=True)
class ArchConfig:
    """A `config.json` whose settings are validated as an architecture reads them.

    Attributes:
        raw: Its keys and values, defaults included.
        hidden_size: Width of the residual stream.
        intermediate_size: Width of MLPs.
        num_layers: `num_hidden_layers`.
        num_heads: `num_attention_heads`.
        num_kv_heads: `num_key_value_heads`.
        head_dim: Width of a head.
        rotary_dim: Width of a head that rotates.
        vocab_size: Tokens.
    """

    raw: Mapping[str, Any]
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rotary_dim: int
    vocab_size: int

    def whole(self, key: str, most: int, default: int) -> int:
        """Read a positive integer of at most `most`; see `whole`."""
        return whole(self.raw, key, most, default)

    def count(self, key: str, most: int, default: int) -> int:
        """Read an integer from 0 to `most`."""
        value = self.raw.get(key)
        return 0 if value == 0 and value is not False else whole(self.raw, key, most, default)

    def positive(self, key: str, default: float) -> float:
        """Read a positive number; see `positive`."""
        return positive(self.raw, key, default) or default

    def optional(self, key: str) -> float | None:
        """Read a positive number; None if it is absent."""
        return positive(self.raw, key, None)

    def flag(self, key: str, default: bool = False) -> bool:
        """Read a boolean; null and a missing key mean the default."""
        return bool(self.raw.get(key, default))

    @property
    def sliding_window(self) -> int | None:
        """`sliding_window` in tokens; None without."""
        return sliding_window(self.raw)

    def layer_windows(self, period: int) -> tuple[int | None, ...]:
        """Return each layer's sliding window, as `layer_types` says; None for full attention."""
        window, kinds = self.sliding_window, layer_types(self.raw, period)
        return tuple(window if kind == "sliding_attention" else None for kind in kinds)

    def routing(
        self,
        key: str,
        count: int,
        count_per_tok: int,
        scoring: Scoring = Scoring.SOFTMAX,
        *,
        norm_topk_prob: bool = True,
    ) -> RoutingSpec:
        """Read how experts are chosen.

        Args:
            key: Key of the number of experts.
            count: Default of that.
            count_per_tok: Default of `num_experts_per_tok`.
            scoring: How logits become weights. Weights over the chosen experts alone need no norm,
                and only those of a sigmoid have a factor.
            norm_topk_prob: Default of `norm_topk_prob`.
        """
        has_norm = scoring is not Scoring.TOPK_SOFTMAX
        is_sigmoid = scoring is Scoring.SIGMOID
        return RoutingSpec(
            self.whole(key, MAX_EXPERTS, count),
            self.whole("num_experts_per_tok", MAX_EXPERTS, count_per_tok),
            scoring,
            self.flag("norm_topk_prob", norm_topk_prob) if has_norm else True,
            self.positive("routed_scaling_factor", 1.0) if is_sigmoid else 1.0,
        )

    @property
    def has_expert_groups(self) -> bool:
        """Whether experts are chosen within groups (DeepSeek-V3)."""
        return any(self.whole(key, MAX_EXPERTS, 1) != 1 for key in ("n_group", "topk_group"))

    def expert_width(self, default: int) -> int:
        """Read `moe_intermediate_size`."""
        return self.whole("moe_intermediate_size", MAX_INTERMEDIATE, default)

    def listed_layers(self, key: str) -> frozenset[int]:
        """Read a list of layer indices.

        Raises:
            ModelError: It is none.
        """
        found = self.raw.get(key) or []
        if not isinstance(found, list) or not all(isinstance(index, int) for index in found):
            raise ModelError(tr("config.json: {0} is no list of layers.", key), AGAIN)
        return frozenset(found)


def _like_llama(_: ArchConfig) -> ModelFields:
    """Return no model settings: all have Llama's values."""
    return {}


@dataclass(frozen=True, slots=True)
class Arch:
    """An architecture: how its `config.json` is read, and its blocks.

    Attributes:
        name: `model_type` in its `config.json`.
        blocks: Blocks of a model, one for each layer. Raises ModelError if settings make no sense
            or aren't supported.
        model: Settings of the whole model that differ from Llama's.
        defaults: Values of a `config.json` that lacks these keys.
        keys: This engine's keys → those of the architecture's `config.json`, where they differ.
        normalize: Further changes to a `config.json` before it is read; may raise ModelError.
        gguf: How GGUF files store it.
    """

    name: str
    blocks: Callable[[ArchConfig], Sequence[BlockSpec]]
    model: Callable[[ArchConfig], ModelFields] = _like_llama
    defaults: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    normalize: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    gguf: GgufArchitecture = field(default_factory=GgufArchitecture)

    def normalized(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a `config.json` with the keys of `ArchConfig`, and defaults for missing ones."""
        named = {key: raw[own] for key, own in self.keys.items() if own in raw}
        known = {key: value for key, value in {**raw, **named}.items() if value is not None}
        found = {**raw, **self.defaults, **known}
        return found if self.normalize is None else self.normalize(found)


@cache
def arch_registry() -> Registry[Arch]:
    """Return the registry of all architectures."""
    return Registry(arch, "architecture", Arch)


@cache
def gguf_archs() -> Mapping[str, Arch]:
    """Return the architectures whose GGUF files are read, by `general.architecture`."""
    specs = [spec for spec in arch_registry().specs if spec.gguf.name]
    return {name: spec for spec in specs for name in (spec.gguf.name, *spec.gguf.aliases)}


def find_arch(model_type: str) -> Arch:
    """Return the architecture with this `model_type`.

    Raises:
        ModelError: It isn't supported.
    """
    for spec in arch_registry().specs:
        if spec.name == model_type:
            return spec
    raise unknown_family(model_type, tr("no family here describes them"))


def unknown_family(model_type: str, reason: str) -> ModelError:
    """Make the error for models that can't be run.

    Args:
        model_type: Theirs.
        reason: The reason, for people.
    """
    return ModelError(
        tr(
            "Models of type {0} aren't supported: {1}.",
            reprlib.repr(model_type or "unknown"),
            reason,
        ),
        "Choose one of Llama, Mistral, Qwen 2 to 3.5, Gemma, Granite, LFM2, Phi, OLMo, SmolLM3 and "
        "their relatives, or most others that write text, which run through transformers.",
    )


def layer_types(raw: Mapping[str, Any], period: int) -> tuple[str, ...]:
    """Return `layer_types`; by default every `period`-th layer has full attention.

    Args:
        raw: A `config.json`.
        period: Period of layers with full attention where it says nothing.

    Raises:
        ModelError: There isn't one type for each layer.
    """
    count = raw.get("num_hidden_layers")
    count = count if isinstance(count, int) and 0 < count <= MAX_LAYERS else 0
    kinds = raw.get("layer_types")
    if kinds is None:
        every = raw.get("sliding_window_pattern", raw.get("_sliding_window_pattern", period))
        every = every if isinstance(every, int) and every > 0 else period
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


def whole(raw: Mapping[str, Any], key: str, most: int, default: int | None = None) -> int:
    """Read a positive integer; null and a missing key mean the default, if there is one.

    Raises:
        ModelError: It is something else.
    """
    value = raw.get(key)
    value = default if value is None else value
    if not is_whole(value, 1, most):
        raise ModelError(
            tr(
                "config.json: {0} is {1}, not a whole number from 1 to {2:,}.",
                key,
                reprlib.repr(value),
                most,
            ),
            AGAIN,
        )
    return value


def positive(raw: Mapping[str, Any], key: str, default: float | None) -> float | None:
    """Read a positive number; null and a missing key mean the default.

    Raises:
        ModelError: It is something else.
    """
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not LEAST <= value <= MOST:
        raise ModelError(
            tr("config.json: {0} is {1}, not a positive number.", key, reprlib.repr(value)), AGAIN
        )
    return float(value)


def local_theta(raw: Mapping[str, Any], default: float) -> float:
    """Read `rope_theta` of sliding-window layers from a `config.json` with several RoPEs."""
    parameters = raw.get("rope_parameters")
    local = parameters.get("sliding_attention") if isinstance(parameters, Mapping) else None
    theta = positive(local, "rope_theta", default) if isinstance(local, Mapping) else default
    return theta or default


def sliding_window(raw: Mapping[str, Any]) -> int | None:
    """Read `sliding_window`; None if it is null, missing or switched off.

    Raises:
        ModelError: It is something else.
    """
    window = raw.get("sliding_window")
    if window is None:
        return None
    if not is_whole(window, 1, 1 << 62):
        raise ModelError(tr("config.json: sliding_window is {0}.", reprlib.repr(window)), AGAIN)
    return window
