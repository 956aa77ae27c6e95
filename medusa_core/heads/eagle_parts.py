"""Tensor names and settings of published EAGLE heads.

EAGLE-1 and 2 read the target's final state and the next token's embedding; EAGLE-3 reads states of
several layers. Layouts: the reference implementation's, vLLM's, SGLang's and that of "speculators".

Sources: EAGLE (Li et al. 2024a), EAGLE-2 (2024b), EAGLE-3 (2025).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medusa_core.errors import HeadsError, ModelError
from medusa_core.heads.block_parts import is_block
from medusa_core.heads.checks import (
    Shapes,
    bad_setting,
    check_shapes,
    flag,
    listed,
    llama_shapes,
    names_by_part,
)
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.system.files.safetensors_header import TensorShapes

_PREFIX = re.compile(r"(?:model\.)?(?:midlayer|layers\.(\d{1,2}))\.")
_IN_LAYER = {
    "self_attn.q_proj.weight": "q",
    "self_attn.k_proj.weight": "k",
    "self_attn.v_proj.weight": "v",
    "self_attn.o_proj.weight": "o",
    "self_attn.q_proj.bias": "q_bias",
    "self_attn.k_proj.bias": "k_bias",
    "self_attn.v_proj.bias": "v_bias",
    "self_attn.q_norm.weight": "q_norm",
    "self_attn.k_norm.weight": "k_norm",
    "mlp.gate_proj.weight": "gate",
    "mlp.up_proj.weight": "up",
    "mlp.down_proj.weight": "down",
    "input_layernorm.weight": "vector_norm",
    "hidden_norm.weight": "state_norm",
    "post_attention_layernorm.weight": "mlp_norm",
}
_OUTSIDE = {
    "fc.weight": "fc",
    "fc.bias": "fc_bias",
    "norm.weight": "last_norm",
    "input_norm.weight": "features_norm",
    "embed_tokens.weight": "embedding",
    "lm_head.weight": "lm_head",
    "d2t": "drafted_tokens",
    "t2d": "is_drafted",
    "mask_hidden": "masked_state",
}
_FEATURE_NORM = re.compile(r"fc_norm\.(\d{1,2})\.weight")
_IN_EACH = ("q", "k", "v", "o", "gate", "up", "down", "mlp_norm")
_ALWAYS = ("fc", *_IN_EACH)
_OF_THREE = ("vector_norm", "state_norm", "last_norm")
_MOST_TAPS = 8
# What a token of MASK is called: by speculators, and by those who trained the first P-EAGLE heads.
_MASK_KEYS = ("mask_token_id", "ptd_token_id")


@dataclass(frozen=True, slots=True)
class EagleParts:
    """Tensor names and settings of a head.

    Attributes:
        names: Tensor name of each part.
        layer: Sizes of its layers.
        taps: Target layers whose inputs are read, as configured; empty for the defaults, and for
            EAGLE-1.
        num_features: Number of target states that are concatenated.
        is_third: Whether it is an EAGLE-3 head.
        norms_residual: Whether the residual of attention is the normalized state.
        feeds_normed: Whether the next draft step reads the state after the last norm.
        num_columns: Size of the draft vocabulary; 0 for the target's projection.
        vocab_of_file: The target's vocabulary size in `config.json`; 0 if it isn't given.
        mask_token_id: P-EAGLE's MASK token.
    """

    names: Mapping[str, str]
    layer: ModelConfig
    taps: tuple[int, ...]
    num_features: int
    is_third: bool
    norms_residual: bool
    feeds_normed: bool
    num_columns: int
    vocab_of_file: int
    mask_token_id: int = 0

    @property
    def is_parallel(self) -> bool:
        """Whether all tokens are drafted in one pass (P-EAGLE)."""
        return "masked_state" in self.names

    def embeds(self, target_width: int) -> bool:
        """Whether its own token embeddings are read; the target's are used if they are equal."""
        differs = self.is_parallel or self.layer.hidden_size != target_width
        return differs and "embedding" in self.names

    def target_vocab(self, shapes: TensorShapes) -> int:
        """Return the vocabulary size of the target that it was made for; 0 if unknown.

        Args:
            shapes: Shapes of its parts.
        """
        for part in ("is_drafted", "embedding"):
            if part in shapes:
                return shapes[part][0]
        return self.vocab_of_file

    def layers_read(self, num_layers: int) -> tuple[int, ...]:
        """Return the target layers whose inputs are read.

        Raises:
            HeadsError: The target doesn't have these layers.
        """
        if not self.is_third:
            return ()
        taps = self.taps or (2, num_layers // 2, num_layers - 3)
        fits = len(set(taps)) == self.num_features and all(0 <= t <= num_layers for t in taps)
        if not fits or list(taps) != sorted(taps):
            raise HeadsError(
                tr(
                    "The head reads layers {0}, which a model of {1} layers hasn't.",
                    list(taps),
                    num_layers,
                ),
                "Choose the head that was trained for this model.",
            )
        return taps


def is_eagle(names: frozenset[str]) -> bool:
    """Whether tensors of these names are an EAGLE head."""
    parts = {part_of(name) for name in names}
    return "fc" in parts and "q" in parts and "gate" in parts and not is_block(names)


def part_of(name: str) -> str | None:
    """Return the part that a tensor name stands for, or None if it is unknown."""
    if match := _PREFIX.match(name):
        part, index = _IN_LAYER.get(name[match.end() :]), int(match[1] or 0)
        if part is None or not index:
            return part
        return f"{index}.{'attention_norm' if part == 'vector_norm' else part}"
    outer = name.removeprefix("model.")
    if match := _FEATURE_NORM.fullmatch(outer):
        return f"feature_norm_{int(match[1])}"
    return _OUTSIDE.get(outer)


def eagle_parts(raw: Mapping[str, Any], shapes: TensorShapes) -> EagleParts:
    """Read configuration, tensor names and shapes.

    Args:
        raw: `config.json`.
        shapes: Shapes of all tensors.

    Raises:
        HeadsError: Something is missing, unknown or of the wrong shape.
    """
    speculators = raw.get("speculators_model_type")
    _check_kind(speculators, shapes)
    names = names_by_part(
        shapes,
        part_of,
        lambda unknown: HeadsError(
            tr("Tensors that belong to no EAGLE head: {0}.", unknown),
            "Without them it would draft otherwise: choose another head.",
        ),
        ("rotary_emb.inv_freq",),
    )
    inner = raw.get("transformer_layer_config", raw)
    if not isinstance(inner, Mapping):
        raise bad_setting("transformer_layer_config")
    is_third = "state_norm" in names
    own_columns = shapes[names["lm_head"]][:1] if is_third and "lm_head" in names else (0,)
    count = 1 + max((int(part.partition(".")[0]) for part in names if "." in part), default=0)
    wanted = [*_ALWAYS, *(_OF_THREE if is_third else ())]
    wanted += [f"{n}.{part}" for n in range(1, count) for part in (*_IN_EACH, "attention_norm")]
    missing = [part for part in wanted if part not in names]
    if missing:
        raise HeadsError(
            tr("The EAGLE head lacks {0}.", listed(missing)), "Download the heads again."
        )
    if count > 1 and not is_third:
        raise HeadsError("An EAGLE-1 head has one layer.", "Choose another head for this model.")
    layer = _layer_config(inner, shapes[names["o"]], raw, count)
    num_features = _num_features(shapes[names["fc"]], layer, is_third, raw)
    _check_norms(names, num_features, is_third, raw)
    parts = EagleParts(
        names=names,
        layer=layer,
        taps=_taps(raw),
        num_features=num_features,
        is_third=is_third,
        norms_residual=_flag(raw, "norm_before_residual", speculators is not None),
        feeds_normed=is_third and _flag(raw, "norm_output", False),
        num_columns=own_columns[0] if own_columns else 0,
        vocab_of_file=layer.vocab_size if "vocab_size" in inner else 0,
        mask_token_id=_mask_token(raw) if "masked_state" in names else 0,
    )
    _check_shapes(parts, shapes)
    return parts


def _check_kind(speculators: object, shapes: TensorShapes) -> None:
    """Refuse heads of another kind, recognised by layout name or tensors.

    Raises:
        HeadsError: It isn't an EAGLE head.
    """
    is_parallel = any(part_of(name) == "masked_state" for name in shapes)
    if (speculators == "peagle") != is_parallel and speculators is not None:
        raise HeadsError(
            "What rows of MASK read (mask_hidden) belongs to P-EAGLE heads, and to no others.",
            "Download the heads again.",
        )
    if speculators not in (None, "eagle3", "peagle"):
        raise HeadsError(
            tr("Drafts of the kind {0} aren't supported.", repr(str(speculators)[:40])),
            "Choose an EAGLE-3 head for this model.",
        )


def _flag(raw: Mapping[str, Any], name: str, default: bool) -> bool:
    """Read a flag at the top level or, as NVIDIA publishes heads, within `eagle_config`."""
    nested = raw.get("eagle_config")
    inner = nested if isinstance(nested, Mapping) else {}
    return flag(raw, name, flag(inner, name, default))


def _check_norms(
    names: Mapping[str, str], num_features: int, is_third: bool, raw: Mapping[str, Any]
) -> None:
    """Check that the norms of `config.json` and of the tensors agree, else drafts would be wrong.

    Raises:
        HeadsError: A norm is missing or unexpected.
    """
    each = {part for part in names if part.startswith("feature_norm_")}
    wanted = {f"feature_norm_{index}" for index in range(num_features)}
    normed = _flag(raw, "norm_before_fc", "features_norm" in names)
    agrees = normed == ("features_norm" in names) and each == (
        wanted if _flag(raw, "fc_norm", bool(each)) else set()
    )
    if not agrees or (each and normed) or (not is_third and (each or normed)):
        raise HeadsError(
            tr(
                "The norms of what the EAGLE head reads ({0} for {1} states) aren't those of "
                "config.json.",
                len(each) + normed,
                num_features,
            ),
            "Download the heads again.",
        )
    queries, keys = ({p[:-6] for p in names if p.endswith(f"{c}_norm")} for c in "qk")
    if queries != keys:
        raise HeadsError("The EAGLE head norms queries or keys alone.", "Download the heads again.")


def _mask_token(raw: Mapping[str, Any]) -> int:
    """Read the token id that stands for tokens yet to be drafted (P-EAGLE)."""
    value = next((raw[key] for key in _MASK_KEYS if raw.get(key) is not None), None)
    if type(value) is not int or value < 0:
        raise bad_setting(_MASK_KEYS[0])
    return value


def _layer_config(
    inner: Mapping[str, Any], output: tuple[int, ...], raw: Mapping[str, Any], count: int
) -> ModelConfig:
    """Return the checked sizes of the layers; the width follows from the tensors."""
    wanted = {
        **inner,
        "model_type": "llama",
        "num_hidden_layers": count,
        "quantization_config": None,
        "vocab_size": inner.get("vocab_size", raw.get("draft_vocab_size", 1)),
    }
    heads = inner.get("num_attention_heads")
    if len(output) == 2 and isinstance(heads, int) and heads > 0 and output[1] % heads == 0:
        wanted["head_dim"] = output[1] // heads
    try:
        return parse_config(wanted, {})
    except ModelError as error:
        raise HeadsError(error.message, "Download the heads again.") from error


def _taps(raw: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the configured target layers, by their inputs.

    `eagle_config` names layers by their outputs, as SGLang reads it.
    """
    nested = raw.get("eagle_config")
    inner = nested.get("eagle_aux_hidden_state_layer_ids") if isinstance(nested, Mapping) else None
    value = raw.get("eagle_aux_hidden_state_layer_ids", inner)
    if value is None:
        return ()
    are_ids = isinstance(value, list) and 0 < len(value) <= _MOST_TAPS
    if not are_ids or not all(type(one) is int and 0 <= one < 1 << 10 for one in value):
        raise bad_setting("eagle_aux_hidden_state_layer_ids")
    return tuple(one + (value is inner) for one in value)


def _num_features(
    fc: tuple[int, ...], layer: ModelConfig, is_third: bool, raw: Mapping[str, Any]
) -> int:
    """Return how many states of the target `fc` reads."""
    if not is_third:
        return 1
    width = raw.get("target_hidden_size") or layer.hidden_size
    if len(fc) != 2 or type(width) is not int or width < 1 or fc[1] % width:
        raise HeadsError(
            tr("fc.weight has shape {0}, which isn't states of {1} numbers.", list(fc), width),
            "Download the heads again.",
        )
    return fc[1] // width


def _check_shapes(parts: EagleParts, shapes: TensorShapes) -> None:
    """Compare the shapes of all tensors with the settings."""
    layer, hidden = parts.layer, parts.layer.hidden_size
    features = shapes[parts.names["fc"]][-1] if shapes[parts.names["fc"]] else 0
    wanted: Shapes = {
        **llama_shapes(layer, 2 * hidden if parts.is_third else hidden),
        "fc": (hidden, features if parts.is_third else 2 * hidden),
        "fc_bias": (hidden,),
        "vector_norm": (hidden,),
        "state_norm": (hidden,),
        "last_norm": (hidden,),
        "features_norm": (features,),
        "drafted_tokens": (parts.num_columns,),
    }
    for index in range(parts.num_features):
        wanted[f"feature_norm_{index}"] = (features // parts.num_features,)
    further = {**llama_shapes(layer, hidden), "attention_norm": (hidden,), "state_norm": (hidden,)}
    for index in range(1, layer.num_layers):
        wanted |= {f"{index}.{part}": shape for part, shape in further.items()}
    masked = parts.names.get("masked_state")
    if masked is not None and math.prod(shapes[masked]) != features:
        raise HeadsError(
            tr("{0} isn't {1} numbers.", masked, features), "Download the heads again."
        )
    check_shapes(
        shapes,
        ((name, wanted[part]) for part, name in parts.names.items() if part in wanted),
        tr("The weights and config.json belong to different heads: download both again."),
    )
    if len(shapes[parts.names.get("is_drafted", parts.names["mlp_norm"])]) != 1:
        raise HeadsError("t2d isn't one value for each token.", "Download the heads again.")
    for part in ("embedding", "lm_head"):
        shape = shapes[parts.names[part]] if part in parts.names else (1, hidden)
        if len(shape) != 2 or shape[1] != hidden or not shape[0]:
            raise HeadsError(
                tr("{0} has shape {1}.", parts.names[part], list(shape)), "Download it again."
            )
