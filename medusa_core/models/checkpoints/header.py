"""A checkpoint's header beside its configuration: what doesn't fit is refused before it is read."""

from __future__ import annotations

from collections.abc import Iterator

from medusa_core.models.blocks.sizes import (
    EMBEDDING,
    FINAL_NORM,
    PER_LAYER_TABLE,
    block_tensors,
    lm_head_spec,
    per_layer_tensors,
)
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.stored import stored_as


def check_header(checkpoint: Checkpoint, config: ModelConfig) -> None:
    """Compare the tensors that a configuration asks for with those that are there.

    Linear parts that are quantized already are compared as they are read.

    Raises:
        CheckpointError: One is missing, or of another shape.
    """
    checkpoint.check_shape(f"{EMBEDDING}.weight", (config.vocab_size, config.hidden_size))
    checkpoint.check_shape(f"{FINAL_NORM}.weight", (config.hidden_size,))
    if (of := config.per_layer_embeddings) is not None:
        columns = config.num_layers * of.width
        checkpoint.check_shape(f"{PER_LAYER_TABLE}.weight", (of.vocab_size, columns))
    for name, shape in per_layer_tensors(config).items():
        checkpoint.check_shape(name, shape)
    for index in range(config.num_layers):
        block = block_tensors(config, index)
        for name, size in block.norms.items():
            checkpoint.check_shape(f"{name}.weight", (size,))
        for name, shape in block.others.items():
            checkpoint.check_shape(name, shape)
        for part in block.linears:
            _check_part(checkpoint, part)
    _check_part(checkpoint, lm_head_spec(config))


def _check_part(checkpoint: Checkpoint, part: LinearSpec) -> None:
    is_quantized = stored_as(checkpoint, part) is not None
    for name, shape in _tensors(part):
        if not (is_quantized and name.endswith(".weight")):
            checkpoint.check_shape(name, shape)


def _tensors(part: LinearSpec) -> Iterator[tuple[str, tuple[int, ...]]]:
    for piece in part.pieces:
        yield f"{piece.name}.weight", (piece.tensor_rows, part.columns)
        if part.has_bias:
            yield f"{piece.name}.bias", (piece.tensor_rows,)
