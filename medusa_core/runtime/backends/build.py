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

# Tensors that may stay unread: RoPE tables, which are computed, and draft heads.
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
        config: Configuration of the model.
        precision: Dtypes and device.
        checkpoint: Checkpoint from which `weights` reads.
        weights: Reads its tensors.
        host: Parts that the processor computes beside a card; None for none.

    Raises:
        CheckpointError: A tensor is missing, has a wrong shape, or isn't one of this family.
    """
    decoder = Decoder(config, precision, weights, host)
    unneeded = frozenset((*_unread(config), *_of_draft_layers(config, checkpoint)))
    unread = sorted(name for name in checkpoint.unread - unneeded if not _HARMLESS.fullmatch(name))
    if config.tie_embeddings and "lm_head.weight" in unread:
        unread.remove("lm_head.weight")  # equal to the embedding table
    if unread:
        listed = ", ".join(unread[:8]) + (", ..." if len(unread) > 8 else "")
        raise CheckpointError(
            f"A {config.model_type} model has no place for {len(unread)} of the tensors: {listed}.",
            "Without them it would be another model: choose a checkpoint of a supported kind.",
        )
    return decoder


def _of_draft_layers(config: ModelConfig, checkpoint: Checkpoint) -> Iterator[str]:
    """Yield tensors of draft layers, which are numbered after the model's own in GLM."""
    for name in checkpoint.unread:
        match = _LAYER.match(name)
        if match is None or int(match[1]) < config.num_layers:
            continue
        if f"{match[0]}enorm.weight" in checkpoint.names:  # is never quantized
            yield name


def _unread(config: ModelConfig) -> Iterator[str]:
    """Yield tensors of the layers that no pass reads."""
    for index, block in enumerate(config.blocks):
        for name in () if block.attention is None else block.attention.unread:
            yield f"model.layers.{index}.{name}"
