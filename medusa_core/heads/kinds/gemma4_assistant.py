"""Gemma 4 assistants: a few layers that attend to the target's keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import check_sizes
from medusa_core.heads.gemma4_assistant import AssistantHead
from medusa_core.heads.gemma4_assistant_parts import (
    FAMILIES,
    KIND,
    LAYER_NORMS,
    assistant_names,
    assistant_parts,
    is_assistant,
    layers_in,
    target_rows,
)
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.heads.tensor_reader import linears_of, tensor_reader
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.weights import no_memory
from medusa_core.system.files.safetensors_header import TensorShapes


def _sizes(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of an assistant; without `config.json`, from its tensors alone."""
    if settings:
        parts = assistant_parts(settings, shapes)
        return _shape_of(parts.names, shapes, parts.projection)
    names = assistant_names(shapes)
    return _shape_of(names, shapes, "embedding" if "embedding" in names else "lm_head")


def _shape_of(names: Mapping[str, str], shapes: TensorShapes, projection: str) -> HeadsShape:
    """Return the sizes of an assistant from its parts.

    Raises:
        HeadsError: A tensor isn't a matrix.
    """
    of = {part: tuple(shapes[name]) for part, name in names.items()}
    if any(len(of[part]) != 2 for part in ("pre_projection", "post_projection", projection)):
        raise HeadsError("The assistant's projections are no matrices.", "Download it again.")
    vocab, hidden = of[projection]
    matrices, norms, biases = [of["pre_projection"], of["post_projection"]], hidden + 1, 0
    for index in range(layers_in(names)):
        q, o, gate, down = (of[f"{index}.{part}"] for part in ("q", "o", "gate", "down"))
        matrices += [q, o, (2 * prod(gate[:1]), hidden), down]
        norms += sum(prod(of[f"{index}.{name}"]) + 1 for name in (*LAYER_NORMS, "q_norm"))
        biases += sum(prod(of.get(f"{index}.{name}", (0,))) for name in ("q_bias", "o_bias"))
    clusters = prod(of["centroids"][:1]) if "centroids" in of else 0
    if any(len(matrix) != 2 for matrix in matrices):
        raise HeadsError("The assistant's layers are no matrices.", "Download it again.")
    return HeadsShape(
        num_heads=1,
        columns=vocab,
        hidden_size=hidden,
        matrices=tuple(
            (rows, columns)
            for rows, columns in (*matrices, *([] if clusters else [(vocab, hidden)]))
        ),
        num_norm_numbers=norms,
        num_biases=biases,
        # One scale per layer; clustered tokens aren't quantized.
        num_vector_numbers=layers_in(names) + (vocab + clusters) * hidden * bool(clusters),
        num_ids=vocab if clusters else 0,
        kind=KIND,
        reads_width=of["post_projection"][0],
        made_for_vocab=vocab,
        families=FAMILIES,
    )


def _read(files: HeadFiles, target: HeadsTarget) -> AssistantHead:
    """Load an assistant for a target.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: It is incomplete, or made for another target.
        OutOfMemoryError: It doesn't fit into memory.
    """
    config, precision, shared_weights, formats = target
    checkpoint, parts = files.checkpoint, assistant_parts(files.settings, files.shapes)
    read = target_rows(parts, config)
    check_sizes(parts.width, parts.layers.vocab_size, config)

    integers = {"ordering": partial(_checked_ordering, config=config)}
    read_part = tensor_reader(checkpoint, parts.names, precision, integers)
    build_linear, scale = linears_of(formats, precision), config.embedding_multiplier
    try:
        return AssistantHead(parts, read, read_part, shared_weights, scale, build_linear, precision)
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the assistant")) from error


def _checked_ordering(ordering: Tensor, config: ModelConfig) -> Tensor:
    """Check the order of tokens by clusters. [vocabulary]

    Raises:
        HeadsError: A token occurs twice, or isn't in the target's vocabulary.
    """
    every = torch.arange(len(ordering))
    if len(ordering) != config.vocab_size or not ordering.sort().values.equal(every):
        raise HeadsError(
            "token_ordering of the assistant doesn't name every token of the model once.",
            "Choose the assistant that was trained for this model.",
        )
    return ordering


SPEC = HeadKind(KIND, is_assistant, _sizes, _read, is_ranked=False)
