"""EAGLE heads in every published layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import check_sizes
from medusa_core.heads.eagle import EagleHead
from medusa_core.heads.eagle_parts import EagleParts, eagle_parts, is_eagle
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.heads.tensor_reader import linears_of, tensor_reader, tokens_of_columns
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.weights import no_memory
from medusa_core.system.files.safetensors_header import TensorShapes


def _sizes(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of a head from tensor shapes and configuration."""
    parts = eagle_parts(settings, shapes)
    return _shape_of(parts, {part: shapes[name] for part, name in parts.names.items()})


def _shape_of(parts: EagleParts, shapes: dict[str, tuple[int, ...]]) -> HeadsShape:
    """Return the sizes of a head from the shapes of its parts."""
    layer, hidden, count = parts.layer, parts.layer.hidden_size, parts.layer.num_layers
    queries, keys = layer.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim
    matrices = [shapes["fc"]]
    for index in range(count):
        matrices += [
            (queries + 2 * keys, hidden if index else shapes["q"][1]),
            shapes["o"],
            (2 * layer.intermediate_size, hidden),
            shapes["down"],
        ]
    if parts.num_columns:
        matrices.append(shapes["lm_head"])
    vectors = [shape[0] + 1 for part, shape in shapes.items() if _is_norm(part)]
    biases = [shape[0] for part, shape in shapes.items() if part.endswith("_bias")]
    width = shapes["fc"][1] // (parts.num_features if parts.is_third else 2)
    own_vectors = shapes["embedding"] if parts.embeds(width) else (0, 0)
    return HeadsShape(
        num_heads=1,
        columns=parts.num_columns,
        hidden_size=hidden,
        is_reduced="drafted_tokens" in shapes,
        matrices=tuple((rows, columns) for rows, columns in matrices),
        num_norm_numbers=sum(vectors),
        num_biases=sum(biases),
        cache_row=count * 2 * keys,
        num_vector_numbers=own_vectors[0] * own_vectors[1] + hidden * parts.is_parallel,
        kind="eagle-3" if parts.is_third else "eagle",
        reads_width=width,
        made_for_vocab=parts.target_vocab(shapes),
        deepest_layer=max(parts.taps, default=0),
    )


def _is_norm(part: str) -> bool:
    """Whether a part is a norm's weight."""
    return part.endswith("_norm") or part.startswith("feature_norm_")


def _read(files: HeadFiles, target: HeadsTarget) -> EagleHead:
    """Load a head for a target."""
    config, precision, shared_weights, formats = target
    checkpoint, parts = files.checkpoint, eagle_parts(files.settings, files.shapes)
    taps = parts.layers_read(config.num_layers)
    _check_fit(parts, checkpoint, config)

    integers = {"drafted_tokens": partial(tokens_of_columns, config=config)}
    read_part = tensor_reader(checkpoint, parts.names, precision, integers)
    build_linear = linears_of(formats, precision)
    try:
        return EagleHead(parts, taps, read_part, shared_weights, build_linear, precision)
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the EAGLE head")) from error


def _check_fit(parts: EagleParts, checkpoint: Checkpoint, config: ModelConfig) -> None:
    """Check that a head was made for this target.

    Raises:
        HeadsError: It wasn't; the message names the difference.
    """
    shape = _shape_of(parts, {part: checkpoint.shape(name) for part, name in parts.names.items()})
    check_sizes(shape.reads_width, shape.made_for_vocab or config.vocab_size, config)
    hidden, names = parts.layer.hidden_size, parts.names
    if hidden != config.hidden_size and not {"embedding", "lm_head"} <= names.keys():
        raise HeadsError(
            tr(
                "The head is {0} wide, the model {1}, and it has no token vectors or no projection "
                "of its own.",
                hidden,
                config.hidden_size,
            ),
            "Choose the heads that were trained for this model.",
        )
    if parts.embeds(config.hidden_size):
        check_sizes(shape.reads_width, checkpoint.shape(names["embedding"])[0], config, padding=0)
    if parts.mask_token_id >= config.vocab_size:
        raise HeadsError(
            tr("The head's token of MASK, {0}, is none of the model's.", parts.mask_token_id),
            "Choose the heads that were trained for this model.",
        )
    columns = 0 if "drafted_tokens" in names else parts.num_columns
    check_sizes(shape.reads_width, columns or config.vocab_size, config)


SPEC = HeadKind("eagle", is_eagle, _sizes, _read, is_ranked=False)
