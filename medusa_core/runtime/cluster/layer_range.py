"""Which layers of a target a stage has, and a target's sizes as that stage sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from medusa_core.errors import ClusterError
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import RowShape


class LayerRange(NamedTuple):
    """Consecutive layers.

    Attributes:
        first: The first of them.
        stop: The one behind the last.
    """

    first: int
    stop: int

    @property
    def num_layers(self) -> int:
        """How many."""
        return self.stop - self.first

    def __str__(self) -> str:
        return f"layers {self.first + 1} to {self.stop}" if self.num_layers else "no layers"


NO_LAYERS = LayerRange(0, 0)


def shares_of(counts: Sequence[int]) -> list[LayerRange]:
    """Consecutive shares of so many layers each."""
    pairs = zip(accumulate(counts), counts, strict=True)
    return [LayerRange(stop - count, stop) if count else NO_LAYERS for stop, count in pairs]


def share_config(config: ModelConfig, share: LayerRange) -> ModelConfig:
    """A target's sizes with the layers of a share alone, counted from 0.

    Args:
        config: Of the whole target.
        share: The layers. Only who has none embeds tokens: rows come to the others as they are.
    """
    some = config.with_blocks(config.blocks[share.first : share.stop])
    return replace(some, embedding_multiplier=1.0) if share.num_layers else some


def can_be_divided(config: ModelConfig) -> bool:
    """Whether layers can be with other machines: all have keys and values of one size."""
    first, *others = config.layers
    return isinstance(first, RowShape) and all(shape == first for shape in others)


def client_config(config: ModelConfig) -> ModelConfig:
    """Of a target whose layers are with other machines, the sizes of what stays with the client.

    Raises:
        ClusterError: Its layers can't be divided.
    """
    if not can_be_divided(config):
        raise ClusterError(
            f"Layers of {config.model_type} models can't be with other machines: some hold states, "
            "or use what others hold.",
            "Load it on this computer, or choose a model such as Qwen3 or Llama.",
        )
    return share_config(config, NO_LAYERS)
