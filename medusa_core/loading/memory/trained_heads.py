"""Sizes of heads before they are trained."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig
from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS

_ITEMSIZE = 2  # bfloat16, as heads are published
_EAGLE_TAPS, _DSPARK_TAPS = 3, 5
_MARKOV_RANK = 64


def trained_bytes(kind: str, config: ModelConfig, num_heads: int) -> int:
    """Return the bytes of heads that training makes with default options.

    Args:
        kind: One of `TRAINED_KINDS`, except streams.
        config: Configuration of the target.
        num_heads: Number of tokens that are drafted, if the size depends on it.
    """
    width, vocab = config.hidden_size, config.vocab_size
    kept = TRAINED_KINDS[kind].vocabulary
    is_reduced = 0 < kept < vocab
    columns = kept if is_reduced else vocab
    layer = width * width + width
    shared = columns * width if is_reduced else 0  # otherwise the target's own projection
    match kind:
        case "medusa":
            numbers = num_heads * (layer + columns * width)
        case "medusa-shared":
            numbers = num_heads * layer + shared
        case "rooted":
            numbers = num_heads * (layer + width * width) + shared
        case "hydra":
            inputs = sum(range(2, num_heads + 2))
            numbers = inputs * width * width + num_heads * width
            numbers += 0 if config.tie_embeddings else columns * width
        case "eagle":
            numbers = _eagle(config, columns)
        case _:
            numbers = _dspark(config, columns) + shared
    return _ITEMSIZE * numbers


def _eagle(config: ModelConfig, columns: int) -> int:
    """Number of weights of an EAGLE head with `columns` output tokens."""
    width, inner = config.hidden_size, config.num_heads * config.head_dim
    taps = min(_EAGLE_TAPS, config.num_layers + 1)
    attention = 7 * width * inner  # q, k and v read a hidden state and an embedding
    mlp = 3 * width * config.intermediate_size
    return taps * width * width + attention + mlp + 4 * width + columns * width


def _dspark(config: ModelConfig, columns: int) -> int:
    """Number of weights of a DSpark drafter, without the projection to its `columns` tokens."""
    width, size = config.hidden_size, config.head_dim
    taps = min(_DSPARK_TAPS, max(1, config.num_layers - 2))
    attention = 4 * width * size * config.num_heads + 2 * size
    mlp = 3 * width * config.intermediate_size
    layer = attention + mlp + 2 * width
    markov = _MARKOV_RANK * (config.vocab_size + columns)
    return taps * width * width + layer + 2 * width + markov + width + _MARKOV_RANK + 1
