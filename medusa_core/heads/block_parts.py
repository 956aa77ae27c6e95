"""Which tensor of a published block drafter is which part, whatever it is called, and its settings.

A block drafter fills a block of places in one pass: place 0 is the last decided token, the others
are MASK. DFlash, DSpark (DFlash with a Markov head and a confidence head) and JetSpec (DFlash that
looks back alone in its block) are such.

Tensors, with H hidden, T states of the target side by side, V its tokens, C drafted ones, r a rank:

    fc.weight                                    [H, T · H]    model.fc, encoder.fc
    hidden_norm.weight                           [H]           encoder.output_norm_enc
    layers.{i}.input_layernorm.weight            [H]
    layers.{i}.self_attn.q_proj.weight           [q heads · head_dim, H]    .bias, all four or none
    layers.{i}.self_attn.{k,v}_proj.weight       [kv heads · head_dim, H]
    layers.{i}.self_attn.o_proj.weight           [H, q heads · head_dim]
    layers.{i}.self_attn.{q,k}_norm.weight       [head_dim]
    layers.{i}.post_attention_layernorm.weight   [H]
    layers.{i}.mlp.{gate,up}_proj.weight         [inner, H]
    layers.{i}.mlp.down_proj.weight              [H, inner]
    norm.weight                                  [H]
    embed_tokens.weight, lm_head.weight          [V, H]        copies of the target's: not read
    lm_head.weight                               [C, H]        read where C < V, with d2t
    d2t                                          [C] int64     token id − column

and of DSpark besides (C is V where there is no d2t):

    markov_head.markov_w1.weight                 [V, r]        scores of a place behind the token
    markov_head.markov_w2.weight                 [C, r]        t gain markov_w2 · markov_w1[t]
    confidence_head.proj.weight                  [1, H + r]    or [1, H]: read of the place's state
    confidence_head.proj.bias                    [1]           behind `norm`, then of markov_w1[t]

`config.json`, as DeepSeek writes it, holds Qwen3's keys (`model_type` "qwen3", `hidden_size`,
`num_hidden_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`, `intermediate_size`,
`rms_norm_eps`, `rope_parameters` or `rope_theta`, `vocab_size`) and

    architectures           ["Qwen3DSparkModel"]
    block_size              places of a block, each of which drafts a token
    mask_token_id           the token whose vector stands for MASK
    target_layer_ids        the target's layers whose leaving states are read, from 0 on, ascending;
                            −1 is what enters the first
    num_target_layers       layers of the target
    markov_rank             r; `markov_head_type` is "vanilla"
    enable_confidence_head, confidence_head_with_markov    true, true
    draft_vocab_size        C, where the vocabulary is reduced
    sample_from_anchor      true: place 0 drafts the next token, place 1 the one behind it, ... Else
                            place 0 drafts nothing, and there are `block_size` − 1 drafts

DFlash2 has besides, in every layer, with a kernel's width k and G groups of channels,

    layers.{i}.{attention,mlp}_conv.base_kernel               [2, k, H]
    layers.{i}.{attention,mlp}_conv.kernel_projection.weight  [2 · k · G, H]
    candidate_selector.{predecessor,successor}_codebook       [V, r]        or …codebook.weight
    candidate_selector.hidden_projection.weight               [r, H]

and `selector_top_k`. z-lab's DFlash and JetSpec have `mask_token_id` and `target_layer_ids` within
`dflash_config`, and place 0 drafts nothing; JetSpec has `causal_head` true there. The "speculators"
layout has the layers' keys within `transformer_layer_config`, and `aux_hidden_state_layer_ids` name
layers by what enters them.

Sources: DFlash (arXiv 2602.06036), z-lab/dflash `model.py`; DSpark (arXiv 2607.05147),
deepseek-ai/DeepSpec `modeling/dspark`; JetSpec (arXiv 2606.18394), hao-ai-lab/JetSpec
`draft_head.py`; vllm-project/speculators `models/{dflash,dspark}`; llama.cpp `conversion/qwen.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medusa_core.errors import HeadsError, ModelError
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.family import layer_kinds, positive, whole
from medusa_core.models.traits import Activation
from medusa_core.system.files.safetensors_header import TensorShapes

_LAYER = re.compile(r"layers\.(\d{1,3})\.(.+)")
_IN_LAYER = {
    "input_layernorm.weight": "attention_norm",
    "self_attn.q_proj.weight": "q",
    "self_attn.k_proj.weight": "k",
    "self_attn.v_proj.weight": "v",
    "self_attn.o_proj.weight": "o",
    "self_attn.q_proj.bias": "q_bias",
    "self_attn.k_proj.bias": "k_bias",
    "self_attn.v_proj.bias": "v_bias",
    "self_attn.o_proj.bias": "o_bias",
    "self_attn.q_norm.weight": "q_norm",
    "self_attn.k_norm.weight": "k_norm",
    "post_attention_layernorm.weight": "mlp_norm",
    "mlp.gate_proj.weight": "gate",
    "mlp.up_proj.weight": "up",
    "mlp.down_proj.weight": "down",
    "pre_feedforward_layernorm.weight": "before_mlp_norm",
    "post_feedforward_layernorm.weight": "behind_mlp_norm",
    "layer_scalar": "scale",
    "attention_conv.base_kernel": "attention_convolution_kernels",
    "attention_conv.kernel_projection.weight": "attention_convolution_projection",
    "mlp_conv.base_kernel": "mlp_convolution_kernels",
    "mlp_conv.kernel_projection.weight": "mlp_convolution_projection",
}
_OUTSIDE = {
    "fc.weight": "fc",
    "encoder.fc.weight": "fc",
    "hidden_norm.weight": "features_norm",
    "encoder.output_norm_enc.weight": "features_norm",
    "norm.weight": "last_norm",
    "embed_tokens.weight": "embedding",
    "lm_head.weight": "lm_head",
    "d2t": "token_offsets",
    "markov_head.markov_w1.weight": "markov_w1",
    "markov_head.markov_w2.weight": "markov_w2",
    "confidence_head.proj.weight": "confidence",
    "confidence_head.proj.bias": "confidence_bias",
    "confidence_proj.weight": "confidence",
    "confidence_proj.bias": "confidence_bias",
    "candidate_selector.predecessor_codebook": "selector_before",
    "candidate_selector.predecessor_codebook.weight": "selector_before",
    "candidate_selector.successor_codebook": "selector_behind",
    "candidate_selector.successor_codebook.weight": "selector_behind",
    "candidate_selector.hidden_projection.weight": "selector_projection",
}
# Of training alone, or copies of the target's.
_UNREAD = ("t2d", "verifier_norm.weight", "verifier_lm_head.weight", "mask_embedding")
_BIASES = ("q_bias", "k_bias", "v_bias", "o_bias")
_CONVOLUTIONS = tuple(part for part in _IN_LAYER.values() if "convolution" in part)
_SELECTOR = ("selector_before", "selector_behind", "selector_projection")
_EVERY_LAYER = (
    *("attention_norm", "q", "k", "o", "q_norm", "k_norm"),
    *("mlp_norm", "gate", "up", "down"),
)
_OF_GEMMA = ("behind_attention_norm", "behind_mlp_norm", "scale")
_ALWAYS = ("fc", "features_norm", "last_norm")
_OF_LAYERS = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"),
    *("num_hidden_layers", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters"),
    *("max_position_embeddings", "vocab_size"),
)
_MOST_LAYERS, _MOST_TAPS, _MOST_PLACES, _MOST_TOKENS = 64, 32, 64, 1 << 24
_AGAIN = "Download the heads again."


@dataclass(frozen=True, slots=True)
class DrafterParts:
    """What a block drafter is made of.

    Attributes:
        kind: dflash, dspark or jetspec.
        names: Of each part the tensor's name; those of layer i begin with `i.`.
        layers: Sizes of its layers, as of a target with so many.
        taps: Layers of the target whose entering states are read.
        num_places: Places of a block.
        mask_id: The token whose vector stands for MASK.
        first_place: The place that drafts the next token: 0 or 1.
        windows: Of every layer how near a place must be to be seen; None for any.
        are_causal: Of every layer: a place sees none behind it in the block.
        embedding_scale: What token vectors are multiplied with.
        score_scale: What the projection's scores are multiplied with.
        score_cap: Scores s become cap · tanh(s / cap); None for as they are.
        num_columns: Tokens that are drafted from; 0 for the target's projection.
        in_pairs: Heads lie as the neighbouring pairs that are turned.
        num_selected: Tokens of a place that the selector compares; 0 without one.
    """

    kind: str
    names: Mapping[str, str]
    layers: ModelConfig
    taps: tuple[int, ...]
    num_places: int
    mask_id: int
    first_place: int
    windows: tuple[int | None, ...]
    are_causal: tuple[bool, ...]
    embedding_scale: float
    score_scale: float
    score_cap: float | None
    num_columns: int
    in_pairs: bool
    num_selected: int

    @property
    def num_drafts(self) -> int:
        """Tokens that a block drafts."""
        return self.num_places - self.first_place


def is_block(names: frozenset[str]) -> bool:
    """Do these tensors look like a block drafter?"""
    parts = {part_of(name) for name in names}
    return {"fc", "features_norm", "0.q"} <= parts


def is_dspark(names: frozenset[str]) -> bool:
    """Do they look like a block drafter with a Markov head?"""
    return is_block(names) and "markov_w1" in {part_of(name) for name in names}


def kind_in(raw: Mapping[str, Any], names: frozenset[str]) -> str:
    """Which kind of block drafter it is."""
    if is_dspark(names):
        return "dspark"
    return "jetspec" if _own(raw).get("causal_head") is True else "dflash"


def part_of(name: str) -> str | None:
    """What a tensor is, by its name; None if it is nothing."""
    name = name.removeprefix("model.")
    if match := _LAYER.fullmatch(name):
        inner = _IN_LAYER.get(match[2])
        return None if inner is None else f"{int(match[1])}.{inner}"
    return _OUTSIDE.get(name)


def drafter_parts(raw: Mapping[str, Any], shapes: TensorShapes) -> DrafterParts:
    """Read configuration, names and shapes.

    Args:
        raw: `config.json`.
        shapes: Of every tensor.

    Raises:
        HeadsError: Something is missing, unknown or of the wrong shape.
    """
    names = _by_part(shapes)
    kind = kind_in(raw, frozenset(shapes))
    _check_variant(raw, kind)
    inner = raw.get("transformer_layer_config", raw)
    if not isinstance(inner, Mapping):
        raise _damaged("transformer_layer_config")
    settings = {**inner, **raw, **_own(raw)}
    try:
        parts = _parts(settings, raw, inner, names, shapes, kind)
    except ModelError as error:
        raise HeadsError(error.message, _AGAIN) from error
    _check_shapes(parts, shapes)
    return parts


def _parts(
    settings: Mapping[str, Any],
    raw: Mapping[str, Any],
    inner: Mapping[str, Any],
    names: Mapping[str, str],
    shapes: TensorShapes,
    kind: str,
) -> DrafterParts:
    layers = _layers(inner, names, shapes)
    num_places = whole(settings, "block_size", _MOST_PLACES, 16)
    windows, are_causal = _sight(raw, inner, layers.num_layers, "encoder.fc.weight" in shapes)
    first = _first_place(settings, raw, kind, num_places)
    if num_places == first:
        raise _damaged("block_size")
    is_reduced = "token_offsets" in names
    if is_reduced and "lm_head" not in names:
        raise HeadsError("The heads draft from some tokens, and have no lm_head.", _AGAIN)
    has_selector = "selector_before" in names
    if is_reduced and has_selector:
        raise HeadsError("The selector knows other tokens than the drafter.", _AGAIN)
    scale = positive(settings, "input_embedding_scale", layers.traits.embedding_scale)
    return DrafterParts(
        kind=kind,
        names=names,
        layers=layers,
        taps=_taps(settings, raw),
        num_places=num_places,
        mask_id=_token(settings, "mask_token_id"),
        first_place=first,
        windows=windows,
        are_causal=are_causal,
        embedding_scale=scale or 1.0,
        score_scale=positive(settings, "output_multiplier", 1.0) or 1.0,
        score_cap=_cap(settings),
        num_columns=shapes[names["lm_head"]][0] if is_reduced and shapes[names["lm_head"]] else 0,
        num_selected=whole(settings, "selector_top_k", 1 << 10, 16) if has_selector else 0,
        in_pairs=not _flag(
            settings, "rope_is_neox_style", "Lfm2DSparkDraftModel" not in _made(raw)
        ),
    )


def _own(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """What z-lab and JetSpec keep apart."""
    own = raw.get("dflash_config") or {}
    if not isinstance(own, Mapping):
        raise _damaged("dflash_config")
    return own


def _made(raw: Mapping[str, Any]) -> Sequence[Any]:
    made = raw.get("architectures") or ()
    return made if isinstance(made, list | tuple) else ()


def _check_variant(raw: Mapping[str, Any], kind: str) -> None:
    """Refuse what looks alike and drafts otherwise."""
    own = _own(raw)
    speculators = raw.get("speculators_model_type")
    if speculators not in (None, "dflash", "dflash2", "dspark"):
        raise HeadsError(
            f"Drafts of the kind {str(speculators)[:40]!r} aren't supported.",
            "Choose a DFlash or DSpark drafter for this model.",
        )
    markov = own.get("markov_head_type", raw.get("markov_head_type"))
    if kind == "dspark" and markov not in (None, "vanilla"):
        raise HeadsError(
            f"A Markov head of the type {str(markov)[:40]!r} isn't supported.",
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


def _by_part(shapes: TensorShapes) -> dict[str, str]:
    names: dict[str, str] = {}
    unknown = []
    for name in sorted(shapes):
        part = part_of(name)
        if part is None or part in names:
            if not name.endswith(("rotary_emb.inv_freq", *_UNREAD)):
                unknown.append(name)
        else:
            names[part] = name
    if unknown:
        listed = ", ".join(unknown[:6]) + (", ..." if len(unknown) > 6 else "")
        raise HeadsError(
            f"Tensors that belong to no block drafter: {listed}.",
            "Without them it would draft otherwise: choose another drafter.",
        )
    count = 1 + max((int(part.split(".")[0]) for part in names if part[0].isdigit()), default=0)
    if count > _MOST_LAYERS:
        raise HeadsError(f"The drafter has {count} layers.", _AGAIN)
    of_layer: tuple[str, ...] = (*_EVERY_LAYER, "v")
    if "0.before_mlp_norm" in names:
        names = {_as_gemmas(part): name for part, name in names.items()}
        of_layer = (*_EVERY_LAYER, *_OF_GEMMA, *(["v"] if "0.v" in names else []))
    wanted = [*_ALWAYS, *(f"{i}.{part}" for i in range(count) for part in of_layer)]
    if "markov_w1" in names or "markov_w2" in names or "confidence" in names:
        wanted += ["markov_w1", "markov_w2"]
    if _SELECTOR[0] in names or "0.mlp_convolution_kernels" in names:
        wanted += [*_SELECTOR, *(f"{i}.{part}" for i in range(count) for part in _CONVOLUTIONS)]
    missing = [part for part in wanted if part not in names]
    if missing:
        raise HeadsError(f"The block drafter lacks {', '.join(missing[:6])}.", _AGAIN)
    return names


def _as_gemmas(part: str) -> str:
    """Gemma's norm of the name that Qwen's before the MLP has stands behind attention."""
    index, _, inner = part.partition(".")
    others = {"mlp_norm": "behind_attention_norm", "before_mlp_norm": "mlp_norm"}
    return f"{index}.{others[inner]}" if inner in others else part


def _layers(
    inner: Mapping[str, Any], names: Mapping[str, str], shapes: TensorShapes
) -> ModelConfig:
    """Sizes of the layers, checked as a target's are; of a head's width the tensors decide."""
    wanted = {key: inner[key] for key in _OF_LAYERS if key in inner}
    rope = wanted.get("rope_parameters")
    if isinstance(rope, Mapping):  # Qwen3 turns whole heads: a share is the target's
        own = {key: value for key, value in rope.items() if key != "partial_rotary_factor"}
        wanted["rope_parameters"] = own
    head = shapes[names["0.q_norm"]]
    wanted["head_dim"] = head[0] if head else 0
    wanted["model_type"] = "qwen3"
    wanted["num_hidden_layers"] = 1 + max(int(p.split(".")[0]) for p in names if p[0].isdigit())
    wanted["attention_bias"] = "0.q_bias" in names
    if "0.scale" in names:
        return parse_config(_of_gemma(inner, wanted, "0.v" not in names), {})
    config = parse_config(wanted, {})
    count = whole(inner, "num_hidden_layers", _MOST_LAYERS, config.num_layers)
    if count != config.num_layers:
        raise HeadsError(
            f"config.json says {count} layers, the drafter has {config.num_layers}.", _AGAIN
        )
    activation = inner.get("hidden_activation", inner.get("hidden_act", "silu"))
    if activation not in (Activation.SILU.value, Activation.GELU_TANH.value):
        raise HeadsError(
            f"The activation {str(activation)[:40]!r} isn't supported.",
            "Choose a drafter with silu or gelu_pytorch_tanh.",
        )
    return replace(config, traits=replace(config.traits, activation=Activation(activation)))


def _of_gemma(
    inner: Mapping[str, Any], wanted: Mapping[str, Any], keys_are_values: bool
) -> dict[str, Any]:
    """Layers of Gemma 4, each of which sees all.

    Raises:
        HeadsError: They have experts, or something for each token, which a drafter hasn't.
    """
    if inner.get("enable_moe_block") or inner.get("hidden_size_per_layer_input"):
        raise HeadsError(
            "A drafter of Gemma 4 with experts or per-layer embeddings isn't supported.",
            "Choose a drafter whose layers are dense.",
        )
    named = "num_global_key_value_heads" if keys_are_values else "num_key_value_heads"
    heads = inner.get(named) or inner.get("num_key_value_heads")
    return {
        **wanted,
        "model_type": "gemma4_text",
        "rope_parameters": inner.get("rope_parameters"),
        "global_head_dim": wanted["head_dim"],
        "num_key_value_heads": heads,
        "num_global_key_value_heads": heads,
        "attention_k_eq_v": keys_are_values,
        "layer_types": ["full_attention"] * wanted["num_hidden_layers"],
        "hidden_size_per_layer_input": 0,
        "hidden_activation": inner.get("hidden_activation", "gelu_pytorch_tanh"),
    }


def _first_place(
    settings: Mapping[str, Any], raw: Mapping[str, Any], kind: str, num_places: int
) -> int:
    """Which place drafts the next token: where the file doesn't say it, as its makers read it."""
    if settings.get("sample_from_anchor") is not None:
        return 0 if _flag(settings, "sample_from_anchor", True) else 1
    if kind != "dspark":
        return 1
    if "transformer_layer_config" in raw or "aux_hidden_state_layer_ids" in raw:
        return 0 if _declared_drafts(raw) == num_places else 1
    return 1 if _own(raw).get("projector_type") == "dspark" else 0  # SpecForge's


def _declared_drafts(raw: Mapping[str, Any]) -> int:
    """How many drafts the "speculators" layout declares; 0 where it doesn't."""
    config = raw.get("speculators_config")
    methods = config.get("proposal_methods") if isinstance(config, Mapping) else None
    first = methods[0] if isinstance(methods, list) and methods else None
    count = first.get("speculative_tokens") if isinstance(first, Mapping) else None
    return count if type(count) is int else 0


def _taps(settings: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[int, ...]:
    """The layers that the configuration names, each by what enters it."""
    entering = raw.get("aux_hidden_state_layer_ids")
    value = settings.get("target_layer_ids") if entering is None else entering
    if value is None:
        value = _usual_layers(settings)
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_TAPS:
        raise _damaged("target_layer_ids")
    if not all(type(one) is int and -1 <= one < 1 << 10 for one in value):
        raise _damaged("target_layer_ids")
    taps = tuple(one + (entering is None) for one in value)
    if min(taps) < 0 or list(taps) != sorted(set(taps)):
        raise _damaged("target_layer_ids")
    return taps


def _usual_layers(settings: Mapping[str, Any]) -> list[int]:
    """What z-lab's and JetSpec's first drafters read: layers spread evenly, one for each of theirs.

    Raises:
        ModelError: The file doesn't say how many layers the target has.
    """
    total = whole(settings, "num_target_layers", 1 << 10, 0)
    count = whole(settings, "num_hidden_layers", _MOST_LAYERS, 0)
    if count == 1:
        return [total // 2]
    return [round(1 + index * (total - 4) / (count - 1)) for index in range(count)]


def _sight(
    raw: Mapping[str, Any], inner: Mapping[str, Any], num_layers: int, includes_edge: bool
) -> tuple[tuple[int | None, ...], tuple[bool, ...]]:
    """How far each layer sees, and whether it sees what lies behind a place in its block.

    Args:
        raw: `config.json`.
        inner: What it says of the layers.
        num_layers: How many there are.
        includes_edge: A window counts the places between, as transformers' masks do.
    """
    own = _own(raw)
    sized = {**inner, "num_hidden_layers": num_layers}
    kinds = layer_kinds(sized, 1) if inner.get("layer_types") else ("full_attention",) * num_layers
    are_local = [kind == "sliding_attention" for kind in kinds]
    window = None
    if includes_edge and any(are_local):
        window = whole(inner, "sliding_window", _MOST_TOKENS, _MOST_TOKENS) + 1
    elif inner.get("use_sliding_window") and inner.get("sliding_window") is not None:
        window = whole(inner, "sliding_window", _MOST_TOKENS, _MOST_TOKENS)
    if own.get("use_swa"):
        are_local, window = [True] * num_layers, whole(own, "swa_window_size", _MOST_TOKENS, 0)
    flags = (raw.get("is_causal"), own.get("causal"), own.get("causal_head"))
    said = next((flag for flag in flags if flag is not None), None)
    if said is None and (includes_edge or own.get("use_swa")):
        said = False
    if said is None and raw.get("sliding_window_non_causal") is True:
        said = False
    are_causal = tuple(are_local) if said is None else (bool(said),) * num_layers
    return tuple(window if is_local else None for is_local in are_local), are_causal


def _cap(settings: Mapping[str, Any]) -> float | None:
    """As z-lab and DeepSeek read it: nothing and 0 mean none."""
    return (
        positive(settings, "final_logit_softcapping", None)
        if settings.get("final_logit_softcapping")
        else None
    )


def _token(settings: Mapping[str, Any], key: str) -> int:
    value = settings.get(key)
    if type(value) is not int or not 0 <= value < _MOST_TOKENS:
        raise _damaged(key)
    return value


def _flag(settings: Mapping[str, Any], key: str, default: bool) -> bool:
    value = settings.get(key, default)
    if not isinstance(value, bool):
        raise _damaged(key)
    return value


def _check_shapes(parts: DrafterParts, shapes: TensorShapes) -> None:
    layers, hidden = parts.layers, parts.layers.hidden_size
    queries, keys = layers.num_heads * layers.head_dim, layers.num_kv_heads * layers.head_dim
    inner, names = layers.intermediate_size, parts.names
    of_layer: dict[str, tuple[int, ...]] = {
        "attention_norm": (hidden,),
        "q": (queries, hidden),
        "k": (keys, hidden),
        "v": (keys, hidden),
        "o": (hidden, queries),
        "q_bias": (queries,),
        "k_bias": (keys,),
        "v_bias": (keys,),
        "o_bias": (hidden,),
        "q_norm": (layers.head_dim,),
        "k_norm": (layers.head_dim,),
        "mlp_norm": (hidden,),
        "behind_attention_norm": (hidden,),
        "behind_mlp_norm": (hidden,),
        "scale": (1,),
        "gate": (inner, hidden),
        "up": (inner, hidden),
        "down": (hidden, inner),
        **_convolution_shapes(parts, shapes),
    }
    wanted = {
        "fc": (hidden, len(parts.taps) * hidden),
        "features_norm": (hidden,),
        "last_norm": (hidden,),
        **{
            f"{index}.{part}": shape
            for index in range(layers.num_layers)
            for part, shape in of_layer.items()
        },
        "token_offsets": (parts.num_columns,),
        "confidence_bias": (1,),
    }
    wanted["embedding"] = (layers.vocab_size, hidden)
    wanted["lm_head"] = (parts.num_columns or layers.vocab_size, hidden)
    if "markov_w1" in names:
        first = shapes[names["markov_w1"]]
        rank = first[-1] if first else 0
        columns = parts.num_columns or layers.vocab_size
        wanted |= {"markov_w1": (layers.vocab_size, rank), "markov_w2": (columns, rank)}
        if shapes[names.get("confidence", names["markov_w1"])] != (1, hidden):
            wanted["confidence"] = (1, hidden + rank)
        if not rank:
            raise HeadsError("The Markov head has the rank 0.", _AGAIN)
    if parts.num_selected:
        last = shapes[names["selector_projection"]]
        rank = last[0] if last else 0
        wanted |= dict.fromkeys(_SELECTOR[:2], (layers.vocab_size, rank))
        wanted["selector_projection"] = (rank, hidden)
        if not rank:
            raise HeadsError("The selector has the rank 0.", _AGAIN)
    for part, name in names.items():
        if part in wanted and shapes[name] != wanted[part]:
            raise HeadsError(
                f"{name} has shape {list(shapes[name])}, not {list(wanted[part])}.",
                "The weights and config.json belong to different heads: download both again.",
            )
    every = [sum(f"{i}.{part}" in names for part in _BIASES) for i in range(layers.num_layers)]
    if set(every) - {0, 4} or len(set(every)) > 1:
        raise HeadsError("Some projections lack their biases.", _AGAIN)


def _convolution_shapes(parts: DrafterParts, shapes: TensorShapes) -> dict[str, tuple[int, ...]]:
    """Of the parts of a layer's convolutions, by the tensors of the first one.

    Raises:
        HeadsError: They are none.
    """
    if not parts.num_selected:
        return {}
    hidden = parts.layers.hidden_size
    kernels, projection = (
        shapes[parts.names[f"0.attention_convolution_{part}"]] for part in ("kernels", "projection")
    )
    width = kernels[1] if len(kernels) == 3 else 0
    rows = projection[0] if projection else 0
    groups = rows // (2 * width) if width else 0
    if not groups or rows != 2 * width * groups or hidden % groups or width > parts.num_places:
        raise HeadsError("The convolutions of the block drafter have odd shapes.", _AGAIN)
    found: dict[str, tuple[int, ...]] = {}
    for name in ("attention_convolution", "mlp_convolution"):
        found[f"{name}_kernels"] = (2, width, hidden)
        found[f"{name}_projection"] = (rows, hidden)
    return found


def _damaged(key: str) -> HeadsError:
    return HeadsError(f"config.json: {key} isn't what a block drafter has there.", _AGAIN)
