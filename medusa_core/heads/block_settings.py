"""Settings of block drafters in all published layouts of `config.json`; keys: see `block_parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import bad_setting, flag
from medusa_core.i18n import tr
from medusa_core.models.architecture import layer_types, positive, whole
from medusa_core.models.blocks.spec import Activation, ActivationSpec
from medusa_core.models.config import ModelConfig, parse_config

_OF_LAYERS = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"),
    *("num_hidden_layers", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters"),
    *("max_position_embeddings", "vocab_size"),
)
_MOST_LAYERS, _MOST_TAPS, _MOST_PLACES, _MOST_TOKENS = 64, 32, 64, 1 << 24
_AGAIN = tr("Download the heads again.")


@dataclass(frozen=True, slots=True)
class BlockSettings:
    """Settings of a block drafter: what its blocks read and how they are drafted.

    Attributes:
        taps: Target layers whose inputs are read.
        num_places: Number of positions of a block.
        mask_id: MASK token.
        first_place: Position that drafts the next token: 0 or 1.
        windows: Sliding window of each layer; None for full attention.
        are_causal: For each layer, whether attention within the block is causal.
        embedding_scale: Factor of token embeddings.
        score_scale: Factor of logits.
        score_cap: `final_logit_softcapping`; None for none.
        is_interleaved: Whether rotated pairs are adjacent (not `is_neox_style`).
        num_selected: Candidates per position that the selector compares.
    """

    taps: tuple[int, ...]
    num_places: int
    mask_id: int
    first_place: int
    windows: tuple[int | None, ...]
    are_causal: tuple[bool, ...]
    embedding_scale: float
    score_scale: float
    score_cap: float | None
    is_interleaved: bool
    num_selected: int

    @property
    def num_drafts(self) -> int:
        """Tokens drafted per block."""
        return self.num_places - self.first_place


def block_settings(
    raw: Mapping[str, Any], kind: str, layers: ModelConfig, is_transformers_layout: bool
) -> BlockSettings:
    """Read the settings of a block drafter from its `config.json`.

    Args:
        raw: `config.json`.
        kind: dflash, dspark or jetspec.
        layers: Sizes of the drafter's layers.
        is_transformers_layout: Whether the tensors have transformers' names.

    Raises:
        HeadsError: A setting is missing or invalid.
        ModelError: A number is out of range.
    """
    layer = layer_settings(raw)
    settings = {**layer, **raw, **drafter_config(raw)}
    num_places = whole(settings, "block_size", _MOST_PLACES, 16)
    windows, are_causal = _visibility(raw, layer, layers.num_layers, is_transformers_layout)
    first = _first_place(settings, raw, kind, num_places)
    if num_places == first:
        raise bad_setting("block_size")
    is_neox = "Lfm2DSparkDraftModel" not in _architectures(raw)
    scale = positive(settings, "input_embedding_scale", layers.embedding_multiplier)
    return BlockSettings(
        taps=_taps(settings, raw),
        num_places=num_places,
        mask_id=_token(settings, "mask_token_id"),
        first_place=first,
        windows=windows,
        are_causal=are_causal,
        embedding_scale=scale or 1.0,
        score_scale=positive(settings, "output_multiplier", 1.0) or 1.0,
        score_cap=_cap(settings),
        is_interleaved=not flag(settings, "rope_is_neox_style", is_neox),
        num_selected=whole(settings, "selector_top_k", 1 << 10, 16),
    )


def layer_settings(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a `config.json` that describes the drafter's transformer layers.

    Raises:
        HeadsError: They aren't an object.
    """
    layer = raw.get("transformer_layer_config", raw)
    if not isinstance(layer, Mapping):
        raise bad_setting("transformer_layer_config")
    return layer


def drafter_config(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `dflash_config`, in which z-lab and JetSpec keep settings; empty if it is missing."""
    own = raw.get("dflash_config") or {}
    if not isinstance(own, Mapping):
        raise bad_setting("dflash_config")
    return own


def check_variant(raw: Mapping[str, Any], kind: str) -> None:
    """Refuse drafters with the same tensors but another computation."""
    own = drafter_config(raw)
    speculators = raw.get("speculators_model_type")
    if speculators not in (None, "dflash", "dflash2", "dspark"):
        raise HeadsError(
            tr("Drafts of the kind {0} aren't supported.", repr(str(speculators)[:40])),
            "Choose a DFlash or DSpark drafter for this model.",
        )
    markov = own.get("markov_head_type", raw.get("markov_head_type"))
    if kind == "dspark" and markov not in (None, "vanilla"):
        raise HeadsError(
            tr("A Markov head of the type {0} isn't supported.", repr(str(markov)[:40])),
            "Choose a DSpark drafter whose markov_head_type is vanilla.",
        )
    projector = own.get("projector_type", raw.get("projector_type"))
    known = (None, "dflash", "dspark")
    scale = own.get("attention_value_scale", raw.get("attention_value_scale"))
    if projector not in known or scale or raw.get("shift_label"):
        raise HeadsError(
            "This block drafter has parts that aren't supported.",
            "Choose a DFlash or DSpark drafter as z-lab, DeepSeek or speculators publish them.",
        )


def layer_sizes(
    layer: Mapping[str, Any], count: int, head_dim: int, has_bias: bool, shares_kv: bool | None
) -> ModelConfig:
    """Parse and check the sizes of the drafter's transformer layers.

    Args:
        layer: Settings of the layers.
        count: Number of layers.
        head_dim: Width of a head, which the tensors determine.
        has_bias: Whether the projections of attention have biases.
        shares_kv: For Gemma 4 layers, whether values equal keys; None for Qwen3 layers.

    Raises:
        HeadsError: They aren't supported.
        ModelError: A size is out of range.
    """
    wanted = {key: layer[key] for key in _OF_LAYERS if key in layer}
    rope = wanted.get("rope_parameters")
    if isinstance(rope, Mapping):  # Qwen3 rotates whole heads: a partial factor is the target's
        own = {key: value for key, value in rope.items() if key != "partial_rotary_factor"}
        wanted["rope_parameters"] = own
    wanted |= {"model_type": "qwen3", "head_dim": head_dim, "attention_bias": has_bias}
    wanted["num_hidden_layers"] = count
    if shares_kv is not None:
        return parse_config(_gemma4_settings(layer, wanted, shares_kv), {})
    config = parse_config(wanted, {})
    count = whole(layer, "num_hidden_layers", _MOST_LAYERS, config.num_layers)
    if count != config.num_layers:
        raise HeadsError(
            tr("config.json says {0} layers, the drafter has {1}.", count, config.num_layers),
            _AGAIN,
        )
    activation = layer.get("hidden_activation", layer.get("hidden_act", "silu"))
    if activation not in (Activation.SILU.value, Activation.GELU_TANH.value):
        raise HeadsError(
            tr("The activation {0} isn't supported.", repr(str(activation)[:40])),
            "Choose a drafter with silu or gelu_pytorch_tanh.",
        )
    return replace(config, activation=ActivationSpec(Activation(activation)))


def _gemma4_settings(
    layer: Mapping[str, Any], wanted: Mapping[str, Any], keys_are_values: bool
) -> dict[str, Any]:
    """Return settings of Gemma 4 layers with full attention.

    Raises:
        HeadsError: They have experts or per-layer embeddings, which drafters don't.
    """
    if layer.get("enable_moe_block") or layer.get("hidden_size_per_layer_input"):
        raise HeadsError(
            "A drafter of Gemma 4 with experts or per-layer embeddings isn't supported.",
            "Choose a drafter whose layers are dense.",
        )
    named = "num_global_key_value_heads" if keys_are_values else "num_key_value_heads"
    heads = layer.get(named) or layer.get("num_key_value_heads")
    return {
        **wanted,
        "model_type": "gemma4_text",
        "rope_parameters": layer.get("rope_parameters"),
        "global_head_dim": wanted["head_dim"],
        "num_key_value_heads": heads,
        "num_global_key_value_heads": heads,
        "attention_k_eq_v": keys_are_values,
        "layer_types": ["full_attention"] * wanted["num_hidden_layers"],
        "hidden_size_per_layer_input": 0,
        "hidden_activation": layer.get("hidden_activation", "gelu_pytorch_tanh"),
    }


def _architectures(raw: Mapping[str, Any]) -> Sequence[Any]:
    """Return `architectures` of a `config.json`."""
    names = raw.get("architectures") or ()
    return names if isinstance(names, list | tuple) else ()


def _first_place(
    settings: Mapping[str, Any], raw: Mapping[str, Any], kind: str, num_places: int
) -> int:
    """Return the position that drafts the next token, by default as in the publisher's code."""
    if settings.get("sample_from_anchor") is not None:
        return 0 if flag(settings, "sample_from_anchor", True) else 1
    if kind != "dspark":
        return 1
    if "transformer_layer_config" in raw or "aux_hidden_state_layer_ids" in raw:
        return 0 if _declared_drafts(raw) == num_places else 1
    return 1 if drafter_config(raw).get("projector_type") == "dspark" else 0  # SpecForge's


def _declared_drafts(raw: Mapping[str, Any]) -> int:
    """Return the number of drafts in the "speculators" layout; 0 if it isn't given."""
    config = raw.get("speculators_config")
    methods = config.get("proposal_methods") if isinstance(config, Mapping) else None
    first = methods[0] if isinstance(methods, list) and methods else None
    count = first.get("speculative_tokens") if isinstance(first, Mapping) else None
    return count if type(count) is int else 0


def _taps(settings: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the configured target layers, by their inputs."""
    entering = raw.get("aux_hidden_state_layer_ids")
    value = settings.get("target_layer_ids") if entering is None else entering
    if value is None:
        value = _default_taps(settings)
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_TAPS:
        raise bad_setting("target_layer_ids")
    if not all(type(one) is int and -1 <= one < 1 << 10 for one in value):
        raise bad_setting("target_layer_ids")
    taps = tuple(one + (entering is None) for one in value)
    if min(taps) < 0 or list(taps) != sorted(set(taps)):
        raise bad_setting("target_layer_ids")
    return taps


def _default_taps(settings: Mapping[str, Any]) -> list[int]:
    """Return the default of z-lab's and JetSpec's first drafters: evenly spread target layers.

    Raises:
        ModelError: The number of target layers isn't given.
    """
    total = whole(settings, "num_target_layers", 1 << 10, 0)
    count = whole(settings, "num_hidden_layers", _MOST_LAYERS, 0)
    if count == 1:
        return [total // 2]
    return [round(1 + index * (total - 4) / (count - 1)) for index in range(count)]


def _visibility(
    raw: Mapping[str, Any], layer: Mapping[str, Any], num_layers: int, window_includes_edge: bool
) -> tuple[tuple[int | None, ...], tuple[bool, ...]]:
    """Return the sliding window of each layer, and whether it is causal within the block.

    Args:
        raw: `config.json`.
        layer: Settings of the layers.
        num_layers: Number of layers.
        window_includes_edge: A window counts the positions between, as transformers' masks do.
    """
    own = drafter_config(raw)
    sized = {**layer, "num_hidden_layers": num_layers}
    kinds = layer_types(sized, 1) if layer.get("layer_types") else ("full_attention",) * num_layers
    are_local = [kind == "sliding_attention" for kind in kinds]
    window = None
    if window_includes_edge and any(are_local):
        window = whole(layer, "sliding_window", _MOST_TOKENS, _MOST_TOKENS) + 1
    elif layer.get("use_sliding_window") and layer.get("sliding_window") is not None:
        window = whole(layer, "sliding_window", _MOST_TOKENS, _MOST_TOKENS)
    if own.get("use_swa"):
        are_local, window = [True] * num_layers, whole(own, "swa_window_size", _MOST_TOKENS, 0)
    flags = (raw.get("is_causal"), own.get("causal"), own.get("causal_head"))
    is_causal = next((flag for flag in flags if flag is not None), None)
    if is_causal is None and (window_includes_edge or own.get("use_swa")):
        is_causal = False
    if is_causal is None and raw.get("sliding_window_non_causal") is True:
        is_causal = False
    are_causal = tuple(are_local) if is_causal is None else (bool(is_causal),) * num_layers
    return tuple(window if is_local else None for is_local in are_local), are_causal


def _cap(settings: Mapping[str, Any]) -> float | None:
    """Read the softcap; null and 0 mean none, as z-lab and DeepSeek read it."""
    return (
        positive(settings, "final_logit_softcapping", None)
        if settings.get("final_logit_softcapping")
        else None
    )


def _token(settings: Mapping[str, Any], key: str) -> int:
    """Read a token id."""
    value = settings.get(key)
    if type(value) is not int or not 0 <= value < _MOST_TOKENS:
        raise bad_setting(key)
    return value
