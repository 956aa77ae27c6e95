"""Tensors and parameters of a whole model, by its specs. Nothing here needs torch."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from medusa_core.models.blocks.spec import BlockSpec, BlockTensors, tensors_at
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

if TYPE_CHECKING:  # which reads the architectures
    from medusa_core.models.config import ModelConfig

EMBEDDING = "model.embed_tokens"
FINAL_NORM = "model.norm"
PER_LAYER_TABLE = "model.embed_tokens_per_layer"
PER_LAYER_PROJECTION = "model.per_layer_model_projection.weight"
PER_LAYER_NORM = "model.per_layer_projection_norm.weight"
_ROW_CACHE_BYTES = 4 << 20  # of decoded rows of a table


def block_tensors(config: ModelConfig, index: int) -> BlockTensors:
    """Return the tensors of a layer."""
    return tensors_at(config.blocks[index], index)


def kinds_of_blocks(config: ModelConfig) -> tuple[tuple[BlockTensors, int], ...]:
    """Return the tensors of a layer of every kind, and the number of such layers."""
    return _kinds(config.blocks)


@lru_cache(maxsize=128)  # as many models as a catalog has: each is planned dozens of times
def _kinds(blocks: tuple[BlockSpec, ...]) -> tuple[tuple[BlockTensors, int], ...]:
    """Tensors of each kind of block with its first layer's index, and how many blocks are of it."""
    counts, first = Counter(blocks), dict[BlockSpec, int]()
    for index, block in enumerate(blocks):
        first.setdefault(block, index)
    return tuple((tensors_at(block, index), counts[block]) for block, index in first.items())


def num_cached_rows(rows: int, columns: int, itemsize: int) -> int:
    """Return how many decoded rows an embedding table caches that is encoded or on disk."""
    return min(rows, max(1, _ROW_CACHE_BYTES // (columns * itemsize)))


def lm_head_spec(config: ModelConfig) -> LinearSpec:
    """Return the output projection: the embedding again where the two are tied."""
    name = EMBEDDING if config.tie_embeddings else "lm_head"
    return LinearSpec("lm_head", (TensorRows(name, config.vocab_size),), config.hidden_size)


def per_layer_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return shapes of what makes per-layer embeddings beside their table, by whole names."""
    embeddings = config.per_layer_embeddings
    if embeddings is None:
        return {}
    total = config.num_layers * embeddings.width
    return {PER_LAYER_PROJECTION: (total, config.hidden_size), PER_LAYER_NORM: (embeddings.width,)}


def num_linear_parameters(config: ModelConfig) -> int:
    """Return the number of weights of the blocks' linear layers."""
    if not config.has_native_family:
        from medusa_core.models.through_transformers.sizes import sizes_of  # asks transformers

        return sum(rows * columns for rows, columns in sizes_of(config).matrices)
    return sum(
        count * sum(part.rows * part.columns for part in block.linears)
        for block, count in kinds_of_blocks(config)
    )


def num_parameters(config: ModelConfig) -> int:
    """Return the parameters of a model, tied ones counted once; no file is read."""
    if not config.has_native_family:
        from medusa_core.models.through_transformers.sizes import sizes_of  # asks transformers

        return sizes_of(config).num_parameters
    hidden, embeddings = config.hidden_size, config.per_layer_embeddings
    num_tables = 1 if config.tie_embeddings else 2
    total = num_tables * config.vocab_size * hidden + hidden  # with the final norm
    for block, count in kinds_of_blocks(config):
        biases = sum(part.rows for part in block.linears if part.has_bias)
        others = sum(math.prod(shape) for shape in block.others.values())
        total += count * (sum(block.norms.values()) + biases + others)
    if embeddings is not None:
        total += embeddings.vocab_size * config.num_layers * embeddings.width
    total += sum(math.prod(shape) for shape in per_layer_tensors(config).values())
    return total + num_linear_parameters(config)
