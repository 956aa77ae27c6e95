"""Which layers of a target a stage has, and a target's sizes as that stage sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from medusa_core.errors import ClusterError
from medusa_core.models.config import ModelConfig
from medusa_core.models.traits import Traits


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
    return replace(config, num_layers=share.num_layers, traits=_traits(config.traits, share))


def client_config(config: ModelConfig) -> ModelConfig:
    """Of a target whose layers are with other machines, the sizes of what stays with the client.

    Raises:
        ClusterError: Its layers can't be divided.
    """
    if config.traits.layers:
        raise ClusterError(
            f"Layers of {config.model_type} models can't be with other machines: some hold states, "
            "or use what others hold.",
            "Load it on this computer, or choose a model such as Qwen3 or Llama.",
        )
    return share_config(config, NO_LAYERS)


def _traits(traits: Traits, share: LayerRange) -> Traits:
    experts = traits.experts
    if experts is not None:
        experts = replace(experts, plain_layers=_shifted(experts.plain_layers, share))
    return replace(
        traits,
        windows=traits.windows[share.first : share.stop],
        unturned=_shifted(traits.unturned, share),
        experts=experts,
        embedding_scale=1.0 if share.num_layers else traits.embedding_scale,
    )


def _shifted(layers: frozenset[int], share: LayerRange) -> frozenset[int]:
    return frozenset(layer - share.first for layer in layers if share.first <= layer < share.stop)
