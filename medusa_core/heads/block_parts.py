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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medusa_core.errors import HeadsError, ModelError
from medusa_core.heads.block_settings import (
    BlockSettings,
    block_settings,
    check_variant,
    drafter_config,
    layer_settings,
    layer_sizes,
)
from medusa_core.heads.checks import Shapes, check_shapes, listed, llama_shapes, names_by_part
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
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
    "pre_feedforward_layernorm.weight": "pre_mlp_norm",
    "post_feedforward_layernorm.weight": "post_mlp_norm",
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
    "d2t": "drafted_tokens",
    "markov_head.markov_w1.weight": "markov_w1",
    "markov_head.markov_w2.weight": "markov_w2",
    "confidence_head.proj.weight": "confidence",
    "confidence_head.proj.bias": "confidence_bias",
    "confidence_proj.weight": "confidence",
    "confidence_proj.bias": "confidence_bias",
    "candidate_selector.predecessor_codebook": "selector_predecessors",
    "candidate_selector.predecessor_codebook.weight": "selector_predecessors",
    "candidate_selector.successor_codebook": "selector_successors",
    "candidate_selector.successor_codebook.weight": "selector_successors",
    "candidate_selector.hidden_projection.weight": "selector_projection",
}
# Used by training alone, or copies of the target's tensors.
_UNUSED = ("t2d", "verifier_norm.weight", "verifier_lm_head.weight", "mask_embedding")
_BIASES = ("q_bias", "k_bias", "v_bias", "o_bias")
_CONVOLUTIONS = tuple(part for part in _IN_LAYER.values() if "convolution" in part)
_SELECTOR = ("selector_predecessors", "selector_successors", "selector_projection")
_LAYER_PARTS = (
    *("attention_norm", "q", "k", "o", "q_norm", "k_norm"),
    *("mlp_norm", "gate", "up", "down"),
)
_GEMMA4_PARTS = ("post_attention_norm", "post_mlp_norm", "scale")
_REQUIRED = ("fc", "features_norm", "last_norm")
_MOST_LAYERS = 64
_AGAIN = tr("Download the heads again.")


@dataclass(frozen=True, slots=True)
class DrafterParts:
    """Tensor names and settings of a block drafter.

    Attributes:
        kind: dflash, dspark or jetspec.
        names: Tensor name of each part; parts of layer i begin with `i.`.
        layers: Sizes of its layers.
        settings: Settings of a block.
        num_columns: Size of the draft vocabulary; 0 for the target's projection.
        has_selector: Whether it has DFlash2's selector and convolutions.
    """

    kind: str
    names: Mapping[str, str]
    layers: ModelConfig
    settings: BlockSettings
    num_columns: int
    has_selector: bool


def is_block(names: frozenset[str]) -> bool:
    """Whether tensors of these names are a block drafter."""
    parts = {part_of(name) for name in names}
    return {"fc", "features_norm", "0.q"} <= parts


def is_dspark(names: frozenset[str]) -> bool:
    """Whether tensors of these names are a block drafter with a Markov head."""
    return is_block(names) and "markov_w1" in {part_of(name) for name in names}


def kind_in(raw: Mapping[str, Any], names: frozenset[str]) -> str:
    """Return the kind of a block drafter."""
    if is_dspark(names):
        return "dspark"
    return "jetspec" if drafter_config(raw).get("causal_head") is True else "dflash"


def part_of(name: str) -> str | None:
    """Return the part that a tensor name stands for, or None if it is unknown."""
    name = name.removeprefix("model.")
    if match := _LAYER.fullmatch(name):
        inner = _IN_LAYER.get(match[2])
        return None if inner is None else f"{int(match[1])}.{inner}"
    return _OUTSIDE.get(name)


def drafter_parts(raw: Mapping[str, Any], shapes: TensorShapes) -> DrafterParts:
    """Read configuration, tensor names and shapes.

    Args:
        raw: `config.json`.
        shapes: Shapes of all tensors.

    Raises:
        HeadsError: Something is missing, unknown or of the wrong shape.
    """
    names = _by_part(shapes)
    kind = kind_in(raw, frozenset(shapes))
    check_variant(raw, kind)
    is_reduced, has_selector = "drafted_tokens" in names, "selector_predecessors" in names
    if is_reduced and ("lm_head" not in names or has_selector):
        raise HeadsError("The heads draft from some tokens, and have no lm_head for them.", _AGAIN)
    columns = shapes[names["lm_head"]] if is_reduced else ()
    try:
        layers = _layers(raw, names, shapes)
        settings = block_settings(raw, kind, layers, "encoder.fc.weight" in shapes)
    except ModelError as error:
        raise HeadsError(error.message, _AGAIN) from error
    parts = DrafterParts(kind, names, layers, settings, columns[0] if columns else 0, has_selector)
    _check_shapes(parts, shapes)
    return parts


def _by_part(shapes: TensorShapes) -> dict[str, str]:
    """Map parts to tensor names, and check that all parts of each layer are there."""
    names = names_by_part(
        shapes,
        part_of,
        lambda unknown: HeadsError(
            tr("Tensors that belong to no block drafter: {0}.", unknown),
            "Without them it would draft otherwise: choose another drafter.",
        ),
        ("rotary_emb.inv_freq", *_UNUSED),
    )
    count = 1 + max((int(part.split(".")[0]) for part in names if part[0].isdigit()), default=0)
    if count > _MOST_LAYERS:
        raise HeadsError(tr("The drafter has {0} layers.", count), _AGAIN)
    of_layer: tuple[str, ...] = (*_LAYER_PARTS, "v")
    if "0.pre_mlp_norm" in names:
        names = {_gemma4_part(part): name for part, name in names.items()}
        of_layer = (*_LAYER_PARTS, *_GEMMA4_PARTS, *(["v"] if "0.v" in names else []))
    wanted = [*_REQUIRED, *(f"{i}.{part}" for i in range(count) for part in of_layer)]
    if "markov_w1" in names or "markov_w2" in names or "confidence" in names:
        wanted += ["markov_w1", "markov_w2"]
    if _SELECTOR[0] in names or "0.mlp_convolution_kernels" in names:
        wanted += [*_SELECTOR, *(f"{i}.{part}" for i in range(count) for part in _CONVOLUTIONS)]
    missing = [part for part in wanted if part not in names]
    if missing:
        raise HeadsError(tr("The block drafter lacks {0}.", listed(missing)), _AGAIN)
    return names


def _gemma4_part(part: str) -> str:
    """Rename norms: in Gemma 4 Qwen3's name of the MLP's norm is that of attention's output."""
    index, _, inner = part.partition(".")
    others = {"mlp_norm": "post_attention_norm", "pre_mlp_norm": "mlp_norm"}
    return f"{index}.{others[inner]}" if inner in others else part


def _layers(raw: Mapping[str, Any], names: Mapping[str, str], shapes: TensorShapes) -> ModelConfig:
    """Return the checked sizes of the layers, some of which follow from the tensors."""
    head = shapes[names["0.q_norm"]]
    count = 1 + max(int(part.split(".")[0]) for part in names if part[0].isdigit())
    shares_kv = "0.v" not in names if "0.scale" in names else None
    return layer_sizes(
        layer_settings(raw), count, head[0] if head else 0, "0.q_bias" in names, shares_kv
    )


def _check_shapes(parts: DrafterParts, shapes: TensorShapes) -> None:
    """Compare the shapes of all tensors with the settings; biases must be complete."""
    names, num_layers = parts.names, parts.layers.num_layers
    wanted = _wanted_shapes(parts, shapes)
    of_parts = ((name, wanted[part]) for part, name in names.items() if part in wanted)
    check_shapes(
        shapes,
        of_parts,
        tr("The weights and config.json belong to different heads: download both again."),
    )
    every = [sum(f"{i}.{part}" in names for part in _BIASES) for i in range(num_layers)]
    if set(every) - {0, 4} or len(set(every)) > 1:
        raise HeadsError("Some projections lack their biases.", _AGAIN)


def _wanted_shapes(parts: DrafterParts, shapes: TensorShapes) -> Shapes:
    """Return the expected shapes of all parts."""
    layers, hidden = parts.layers, parts.layers.hidden_size
    of_layer = {
        **llama_shapes(layers, hidden),
        "attention_norm": (hidden,),
        "post_attention_norm": (hidden,),
        "post_mlp_norm": (hidden,),
        "scale": (1,),
        **_convolution_shapes(parts, shapes),
    }
    return {
        "fc": (hidden, len(parts.settings.taps) * hidden),
        "features_norm": (hidden,),
        "last_norm": (hidden,),
        "drafted_tokens": (parts.num_columns,),
        "confidence_bias": (1,),
        "embedding": (layers.vocab_size, hidden),
        "lm_head": (parts.num_columns or layers.vocab_size, hidden),
        **{
            f"{index}.{part}": shape
            for index in range(layers.num_layers)
            for part, shape in of_layer.items()
        },
        **_markov_shapes(parts, shapes),
        **_selector_shapes(parts, shapes),
    }


def _markov_shapes(parts: DrafterParts, shapes: TensorShapes) -> Shapes:
    """Return the expected shapes of the Markov head and the confidence head.

    Raises:
        HeadsError: The Markov head is empty.
    """
    names, layers = parts.names, parts.layers
    if "markov_w1" not in names:
        return {}
    first = shapes[names["markov_w1"]]
    rank = first[-1] if first else 0
    if not rank:
        raise HeadsError("The Markov head has the rank 0.", _AGAIN)
    # The confidence head may read the state alone.
    reads_state = shapes[names.get("confidence", names["markov_w1"])] == (1, layers.hidden_size)
    return {
        "markov_w1": (layers.vocab_size, rank),
        "markov_w2": (parts.num_columns or layers.vocab_size, rank),
        "confidence": (1, layers.hidden_size + (0 if reads_state else rank)),
    }


def _selector_shapes(parts: DrafterParts, shapes: TensorShapes) -> Shapes:
    """Return the expected shapes of the selector.

    Raises:
        HeadsError: It is empty.
    """
    if not parts.has_selector:
        return {}
    last = shapes[parts.names["selector_projection"]]
    rank = last[0] if last else 0
    if not rank:
        raise HeadsError("The selector has the rank 0.", _AGAIN)
    codebook = (parts.layers.vocab_size, rank)
    return {
        "selector_predecessors": codebook,
        "selector_successors": codebook,
        "selector_projection": (rank, parts.layers.hidden_size),
    }


def _convolution_shapes(parts: DrafterParts, shapes: TensorShapes) -> Shapes:
    """Return the expected shapes of the convolutions, which follow from those of the first layer.

    Raises:
        HeadsError: The first ones are malformed.
    """
    if not parts.has_selector:
        return {}
    hidden = parts.layers.hidden_size
    kernels, projection = (
        shapes[parts.names[f"0.attention_convolution_{part}"]] for part in ("kernels", "projection")
    )
    width = kernels[1] if len(kernels) == 3 else 0
    rows = projection[0] if projection else 0
    groups = rows // (2 * width) if width else 0
    if (
        not groups
        or rows != 2 * width * groups
        or hidden % groups
        or width > parts.settings.num_places
    ):
        raise HeadsError("The convolutions of the block drafter have odd shapes.", _AGAIN)
    found: Shapes = {}
    for name in ("attention_convolution", "mlp_convolution"):
        found[f"{name}_kernels"] = (2, width, hidden)
        found[f"{name}_projection"] = (rows, hidden)
    return found
