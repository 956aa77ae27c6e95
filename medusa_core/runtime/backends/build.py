"""Builds the decoder of a target's family from its checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from medusa_core.errors import CheckpointError
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.weights import Weights
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.host_mlp import HostParts

# Written by old programs, and computed anew by all; and what belongs to others, or guesses only.
_HARMLESS = re.compile(r".*rotary_emb\.inv_freq|medusa_heads?\..*|model\.mtp_layers\..*|mtp\..*")

_LAYER = re.compile(r"model\.layers\.(\d{1,4})\.")


def build_decoder(
    config: ModelConfig,
    precision: Precision,
    checkpoint: Checkpoint,
    weights: Weights,
    host: HostParts | None = None,
) -> Decoder:
    """Build a target from a checkpoint.

    Args:
        config: Its sizes.
        precision: What it computes in, and where.
        checkpoint: What `weights` reads.
        weights: Gives the parts.
        host: Parts that the processor computes beside a card; None for none.

    Raises:
        CheckpointError: A tensor is missing, misshapen, or none that this family has.
    """
    decoder = Decoder(config, precision, weights, host)
    unneeded = frozenset((*_unread(config), *_behind(config, checkpoint)))
    unread = sorted(name for name in checkpoint.unread - unneeded if not _HARMLESS.fullmatch(name))
    if config.tie_embeddings and "lm_head.weight" in unread:
        unread.remove("lm_head.weight")  # the embedding again
    if unread:
        listed = ", ".join(unread[:8]) + (", ..." if len(unread) > 8 else "")
        raise CheckpointError(
            f"A {config.model_type} model has no place for {len(unread)} of the tensors: {listed}.",
            "Without them it would be another model: choose a checkpoint of a supported kind.",
        )
    return decoder


def _behind(config: ModelConfig, checkpoint: Checkpoint) -> Iterator[str]:
    """What lies in layers behind the last that only guess: GLM's are counted on from its own."""
    for name in checkpoint.unread:
        match = _LAYER.match(name)
        if match is None or int(match[1]) < config.num_layers:
            continue
        if f"{match[0]}enorm.weight" in checkpoint.names:  # plain in every format
            yield name


def _unread(config: ModelConfig) -> Iterator[str]:
    """Return tensors that layers have and no pass reads."""
    for index, block in enumerate(config.blocks):
        for name in () if block.attention is None else block.attention.unread:
            yield f"model.layers.{index}.{name}"
