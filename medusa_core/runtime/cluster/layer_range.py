"""Ranges of layers, and the config of a model that has only such a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from medusa_core.errors import ClusterError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape


class LayerRange(NamedTuple):
    """Consecutive layers.

    Attributes:
        first: Index of the first layer.
        stop: Index after the last layer.
    """

    first: int
    stop: int

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.stop - self.first

    def __str__(self) -> str:
        return f"layers {self.first + 1} to {self.stop}" if self.num_layers else "no layers"


NO_LAYERS = LayerRange(0, 0)


def shares_of(counts: Sequence[int]) -> list[LayerRange]:
    """Return consecutive ranges with the given numbers of layers."""
    pairs = zip(accumulate(counts), counts, strict=True)
    return [LayerRange(stop - count, stop) if count else NO_LAYERS for stop, count in pairs]


def share_config(config: ModelConfig, share: LayerRange) -> ModelConfig:
    """Return a config with a range of layers, counted from 0.

    Args:
        config: Config of the whole target.
        share: The layers; without any, the config is that of a client, which only embeds tokens
            and computes logits.
    """
    some = config.with_blocks(config.blocks[share.first : share.stop])
    return replace(some, embedding_multiplier=1.0) if share.num_layers else some


def can_be_divided(config: ModelConfig) -> bool:
    """Whether layers can be with other machines: all have keys and values of one size."""
    first, *others = config.layers
    return isinstance(first, KvShape) and all(shape == first for shape in others)


def client_config(config: ModelConfig) -> ModelConfig:
    """Return the config of what stays with the client: everything but the layers.

    Raises:
        ClusterError: Layers of this family can't be divided.
    """
    if not can_be_divided(config):
        raise ClusterError(
            tr(
                "Layers of {0} models can't be with other machines: some hold states, or use what "
                "others hold.",
                config.model_type,
            ),
            "Load it on this computer, or choose a model such as Qwen3 or Llama.",
        )
    return share_config(config, NO_LAYERS)
