"""Compare a checkpoint's header with the model's configuration, before weights are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from medusa_core.models.blocks.sizes import (
    EMBEDDING,
    FINAL_NORM,
    PER_LAYER_TABLE,
    block_tensors,
    lm_head_spec,
    per_layer_tensors,
)
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.stored import stored_as


class UnquantizedTensor(NamedTuple):
    """A tensor that isn't the weight of a linear layer.

    Attributes:
        name: Name in the engine, and in the cache of quantized models.
        stored_name: Name in the checkpoint.
    """

    name: str
    stored_name: str
    shape: tuple[int, ...]


def unquantized_tensors(config: ModelConfig) -> Iterator[UnquantizedTensor]:
    """Yield all tensors but those of linear layers and of the table of per-layer embeddings."""
    hidden = config.hidden_size
    yield UnquantizedTensor(EMBEDDING, f"{EMBEDDING}.weight", (config.vocab_size, hidden))
    yield UnquantizedTensor(FINAL_NORM, f"{FINAL_NORM}.weight", (hidden,))
    for name, shape in per_layer_tensors(config).items():
        yield UnquantizedTensor(name, name, shape)
    for index in range(config.num_layers):
        block = block_tensors(config, index)
        for name, size in block.norms.items():
            yield UnquantizedTensor(name, f"{name}.weight", (size,))
        for name, shape in block.others.items():
            yield UnquantizedTensor(name, name, shape)


def check_header(checkpoint: Checkpoint, config: ModelConfig) -> None:
    """Check that a checkpoint has all tensors of the model, in their shapes.

    The weights of quantized linear layers are checked when they are read.

    Raises:
        CheckpointError: A tensor is missing, or of another shape.
    """
    for tensor in unquantized_tensors(config):
        checkpoint.check_shape(tensor.stored_name, tensor.shape)
    if (table := config.per_layer_embeddings) is not None:
        columns = config.num_layers * table.width
        checkpoint.check_shape(f"{PER_LAYER_TABLE}.weight", (table.vocab_size, columns))
    for part in (*linear_parts(config), lm_head_spec(config)):
        is_quantized = stored_as(checkpoint, part) is not None
        for piece in part.pieces:
            if not is_quantized:
                checkpoint.check_shape(f"{piece.name}.weight", (piece.tensor_rows, part.columns))
            if part.has_bias:
                checkpoint.check_shape(f"{piece.name}.bias", (piece.tensor_rows,))
