"""Which tensors a kept model has, as its configuration and its formats say."""

from __future__ import annotations

from collections.abc import Iterator

from medusa_core.errors import CheckpointError
from medusa_core.models.blocks.sizes import (
    EMBEDDING,
    FINAL_NORM,
    block_tensors,
    lm_head_spec,
    per_layer_tensors,
)
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import (
    QuantSpec,
    TensorKind,
)


def check_quantized(checkpoint: Checkpoint, config: ModelConfig, formats: PartFormats) -> None:
    """Compare a kept model's header with what was to be kept, before anything is read.

    Raises:
        CheckpointError: A tensor is missing, of another dtype or shape, or none of the model's.
    """
    expected = dict(_quantized_tensors(config, formats))
    for name, (dtype, shape) in expected.items():
        found = checkpoint.shape(name)
        fits = len(found) == len(shape) and all(
            wanted in (-1, size) for wanted, size in zip(shape, found, strict=True)
        )
        if not fits or checkpoint.dtype(name) != dtype:
            raise CheckpointError(
                f"The kept model's {name} is {checkpoint.dtype(name)} of {list(found)}, not "
                f"{dtype} of {list(shape)}."
            )
    if extra := checkpoint.names - expected.keys():
        raise CheckpointError(f"The kept model holds {min(extra)}, which it has no place for.")


def _quantized_tensors(
    config: ModelConfig, formats: PartFormats
) -> Iterator[tuple[str, TensorKind]]:
    compute, hidden = formats.compute, config.hidden_size
    yield EMBEDDING, (formats.embedding.compute[0], (config.vocab_size, hidden))
    yield FINAL_NORM, (compute, (hidden,))
    for name, shape in per_layer_tensors(config).items():
        yield name, (compute, shape)
    for index in range(config.num_layers):
        block = block_tensors(config, index)
        for name, size in block.norms.items():
            yield name, (compute, (size,))
        for name, shape in block.others.items():
            yield name, (compute, shape)
        for part in block.linears:
            yield from _part_tensors(part, formats.linears, formats)
    if not formats.shares_embedding(config.tie_embeddings):
        yield from _part_tensors(lm_head_spec(config), formats.lm_head, formats)


def _part_tensors(
    part: LinearSpec, wanted: QuantSpec, formats: PartFormats
) -> Iterator[tuple[str, TensorKind]]:
    spec = part.fitting(wanted, formats)
    kinds = spec.tensors(part.rows, part.columns, formats.compute)
    if part.has_bias:
        kinds["bias"] = (formats.compute, (part.rows,))
    for key, kind in kinds.items():
        yield f"{part.name}/{spec.name}/{key}", kind
