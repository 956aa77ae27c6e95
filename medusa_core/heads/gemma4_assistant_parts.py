"""Tensor names and settings of Gemma 4 assistants.

`config.json` holds `text_config`, a Gemma 4 of few layers without per-layer embeddings or experts;
`backbone_hidden_size`, the target's width B; and where tokens are drafted by clusters
`use_ordered_embeddings`, `num_centroids`, `centroid_intermediate_top_k`. Tensors, for a width h, a
vocabulary V and C clusters:

    pre_projection.weight [h, 2B], post_projection.weight [B, h], model.norm.weight [h]
    model.embed_tokens.weight [V, h]; lm_head.weight [V, h] where it isn't tied to that
    masked_embedding.centroids.weight [C, h], masked_embedding.token_ordering int64 [V]
    model.layers.N.{input,post_attention,pre_feedforward,post_feedforward}_layernorm.weight [h]
    model.layers.N.self_attn.{q_proj,q_norm,o_proj}.weight, .mlp.{gate,up,down}_proj.weight,
    .layer_scalar [1]

Sources: transformers' `models/gemma4_assistant` and `models/gemma4_unified_assistant`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medusa_core.errors import HeadsError, ModelError
from medusa_core.heads.checks import bad_setting, flag, listed, names_by_part
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.layer_shapes import KvShape, rows_of
from medusa_core.system.files.safetensors_header import TensorShapes

KIND = "gemma4-assistant"
FAMILIES = ("gemma4_text", "gemma4_unified_text")
_LAYER = re.compile(r"model\.layers\.(\d{1,3})\.(.+)")
_IN_LAYER = {
    "self_attn.q_proj.weight": "q",
    "self_attn.q_proj.bias": "q_bias",
    "self_attn.o_proj.weight": "o",
    "self_attn.o_proj.bias": "o_bias",
    "self_attn.q_norm.weight": "q_norm",
    "input_layernorm.weight": "attention_norm",
    "post_attention_layernorm.weight": "post_attention_norm",
    "pre_feedforward_layernorm.weight": "mlp_norm",
    "post_feedforward_layernorm.weight": "post_mlp_norm",
    "mlp.gate_proj.weight": "gate",
    "mlp.up_proj.weight": "up",
    "mlp.down_proj.weight": "down",
    "layer_scalar": "scale",
}
_OUTSIDE = {
    "pre_projection.weight": "pre_projection",
    "post_projection.weight": "post_projection",
    "model.norm.weight": "last_norm",
    "model.embed_tokens.weight": "embedding",
    "lm_head.weight": "lm_head",
    "masked_embedding.centroids.weight": "centroids",
    "masked_embedding.token_ordering": "ordering",
}
LAYER_NORMS = ("attention_norm", "post_attention_norm", "mlp_norm", "post_mlp_norm")
_BIASES = ("q_bias", "o_bias")
_REQUIRED = ("pre_projection", "post_projection", "last_norm")
_AGAIN = tr("Download the assistant again.")


@dataclass(frozen=True, slots=True)
class AssistantParts:
    """Tensor names and settings of an assistant.

    Attributes:
        names: Tensor name of each part; a layer's parts are `N.part`.
        layers: Sizes of the layers.
        width: Width of the target.
        projection: Part that scores tokens.
        num_clusters: Clusters of tokens; 0 if all tokens are scored.
        clusters_scored: Clusters whose tokens are scored.
    """

    names: Mapping[str, str]
    layers: ModelConfig
    width: int
    projection: str
    num_clusters: int
    clusters_scored: int


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Keys and values of the target that some layers attend to.

    Attributes:
        layer: The target's layer.
        shape: Sizes of keys and values.
    """

    layer: int
    shape: KvShape


def is_assistant(names: frozenset[str]) -> bool:
    """Whether tensors of these names are an assistant."""
    return {"pre_projection.weight", "post_projection.weight", "model.norm.weight"} <= names


def assistant_names(shapes: TensorShapes) -> dict[str, str]:
    """Return the tensor name of each part.

    Raises:
        HeadsError: A tensor is unknown or missing.
    """
    names = names_by_part(
        shapes,
        _part_of,
        lambda unknown: HeadsError(
            tr("Tensors that belong to no Gemma 4 assistant: {0}.", unknown),
            "Without them it would draft otherwise: choose the assistant as Google published it.",
        ),
    )
    wanted = [*_REQUIRED, "embedding" if "embedding" in names else "lm_head"]
    wanted += [
        f"{index}.{part}"
        for index in range(layers_in(names))
        for part in _IN_LAYER.values()
        if part not in _BIASES
    ]
    wanted += ["centroids", "ordering"] if {"centroids", "ordering"} & names.keys() else []
    missing = [part for part in wanted if part not in names]
    if missing:
        raise HeadsError(tr("The assistant lacks {0}.", listed(missing)), _AGAIN)
    return names


def _part_of(name: str) -> str | None:
    """Return the part that a tensor name stands for; None if it is unknown."""
    match = _LAYER.fullmatch(name)
    part = _OUTSIDE.get(name) if match is None else _IN_LAYER.get(match[2])
    return part if match is None or part is None else f"{int(match[1])}.{part}"


def layers_in(names: Mapping[str, str]) -> int:
    """Return the number of layers."""
    return 1 + max((int(part.partition(".")[0]) for part in names if "." in part), default=-1)


def assistant_parts(raw: Mapping[str, Any], shapes: TensorShapes) -> AssistantParts:
    """Read configuration, tensor names and shapes.

    Args:
        raw: `config.json`.
        shapes: Shapes of all tensors.

    Raises:
        HeadsError: Something is missing, unknown or of the wrong shape.
    """
    names = assistant_names(shapes)
    layers = _layers(raw, layers_in(names))
    clusters, read = _clusters(raw, layers.vocab_size, "centroids" in names)
    is_tied = flag(raw, "tie_word_embeddings", True) and "embedding" in names
    projection = "embedding" if is_tied or "lm_head" not in names else "lm_head"
    width = shapes[names["post_projection"]][0] if shapes[names["post_projection"]] else 0
    if raw.get("backbone_hidden_size", width) != width:
        raise bad_setting("backbone_hidden_size")
    parts = AssistantParts(names, layers, width, projection, clusters, read)
    _check_shapes(parts, shapes)
    return parts


def target_rows(parts: AssistantParts, config: ModelConfig) -> tuple[RowsRead, ...]:
    """Return the target's layer that each layer attends to: the last one of its attention type.

    Raises:
        HeadsError: The target has no such layer.
    """
    if config.model_type not in FAMILIES or not config.has_native_family:
        raise HeadsError(
            tr(
                "A Gemma 4 assistant reads keys and values of a Gemma 4, not of a {0} model.",
                config.model_type,
            ),
            "Choose the Gemma 4 that it was trained for, or go without it.",
        )
    last: dict[bool, RowsRead] = {}
    for index, (shape, window) in enumerate(zip(config.layers, config.windows, strict=True)):
        if (rows := rows_of(shape)) is not None:
            last[window is None] = RowsRead(index, rows)
    found = []
    for index, window in enumerate(parts.layers.windows):
        wanted, read_rows = rows_of(parts.layers.layers[index]), last.get(window is None)
        if read_rows is None or read_rows.shape != wanted:
            kind = "all tokens" if window is None else "a window"
            has = (
                "none"
                if read_rows is None
                else f"{read_rows.shape.num_kv_heads} of {read_rows.shape.head_dim}"
            )
            raise HeadsError(
                tr(
                    "Layer {0} of the assistant reads keys of layers that see {1}, in other heads "
                    "than the model has ({2}).",
                    index,
                    kind,
                    has,
                ),
                "Choose the assistant that was trained for this model.",
            )
        found.append(read_rows)
    return tuple(found)


def _layers(raw: Mapping[str, Any], count: int) -> ModelConfig:
    """Return the checked sizes of the layers."""
    inner = raw.get("text_config")
    if not isinstance(inner, Mapping) or inner.get("model_type") not in FAMILIES:
        raise bad_setting("text_config")
    for key in ("enable_moe_block", "use_double_wide_mlp"):
        if inner.get(key):
            raise HeadsError(tr("Assistants with {0} aren't supported.", key), _AGAIN)
    wanted = {
        **inner,
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 0,
        "quantization_config": None,
    }
    try:
        layers = parse_config(wanted, {})
    except ModelError as error:
        raise HeadsError(error.message, _AGAIN) from error
    if layers.num_layers != count:
        raise HeadsError(
            tr(
                "config.json describes {0} layers, but the assistant has {1}.",
                layers.num_layers,
                count,
            ),
            _AGAIN,
        )
    return layers


def _clusters(raw: Mapping[str, Any], vocab_size: int, are_there: bool) -> tuple[int, int]:
    """Return the number of clusters, and of those that are scored; 0, 0 without clusters.

    Args:
        raw: `config.json` of the assistant.
        vocab_size: Size of the vocabulary.
        are_there: Whether the file has tensors of clusters.

    Raises:
        HeadsError: The settings contradict the tensors, or are out of range.
    """
    if flag(raw, "use_ordered_embeddings", False) != are_there:
        raise bad_setting("use_ordered_embeddings")
    if not are_there:
        return 0, 0
    count, read = raw.get("num_centroids", 2048), raw.get("centroid_intermediate_top_k", 32)
    if type(count) is not int or not 0 < count <= vocab_size or vocab_size % count:
        raise bad_setting("num_centroids")
    if type(read) is not int or not 0 < read <= count:
        raise bad_setting("centroid_intermediate_top_k")
    return count, read


def _check_shapes(parts: AssistantParts, shapes: TensorShapes) -> None:
    """Compare the shapes of all tensors with the settings."""
    layers, hidden = parts.layers, parts.layers.hidden_size
    inner, vocab = layers.intermediate_size, layers.vocab_size
    outside: dict[str, tuple[int, ...]] = {
        "pre_projection": (hidden, 2 * parts.width),
        "post_projection": (parts.width, hidden),
        "last_norm": (hidden,),
        "embedding": (vocab, hidden),
        "lm_head": (vocab, hidden),
        "centroids": (parts.num_clusters, hidden),
        "ordering": (vocab,),
    }
    for key, name in parts.names.items():
        index, _, part = key.rpartition(".")
        wanted = outside.get(key)
        if index:
            rows = rows_of(layers.layers[int(index)])
            assert rows is not None  # every layer of a Gemma 4 attends
            queries = layers.num_heads * rows.head_dim
            wanted = {
                "q": (queries, hidden),
                "q_bias": (queries,),
                "o": (hidden, queries),
                "o_bias": (hidden,),
                "q_norm": (rows.head_dim,),
                "gate": (inner, hidden),
                "up": (inner, hidden),
                "down": (hidden, inner),
                "scale": (1,),
            }.get(part, (hidden,))
        if tuple(shapes[name]) != wanted or not parts.width:
            raise HeadsError(
                tr("{0} has shape {1}, not {2}.", name, list(shapes[name]), list(wanted or ())),
                "The weights and config.json belong to different assistants: download both again.",
            )
