"""A stage as its client knows it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from medusa_core.runtime.cluster.connection import StageConnection
from medusa_core.runtime.cluster.division import Power
from medusa_core.runtime.cluster.layer_range import (
    NO_LAYERS,
    LayerRange,
)
from medusa_core.runtime.cluster.protocol import (
    StageLayers,
    StageOffer,
    StageSpeed,
)

_LATEST = 32  # passes


@dataclass(slots=True, eq=False)
class Member:
    """A stage that fits the client's model.

    Attributes:
        connection: The way to it.
        offer: What it says of itself.
        rate: How it computes.
        share: Its layers; none while it is a spare.
        held: What it has read of them.
        seconds: Of its latest passes.
    """

    connection: StageConnection
    offer: StageOffer
    rate: StageSpeed
    share: LayerRange = NO_LAYERS
    held: StageLayers | None = None
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))

    @property
    def name(self) -> str:
        """Its name among the stages of the cluster."""
        return self.offer.name

    @property
    def power(self) -> Power:
        """What it could do before it was given layers."""
        return Power(self.rate.layer_s, self.rate.most_layers)

    @property
    def layer_s(self) -> float:
        """Seconds of one of its layers in its latest passes."""
        return sum(self.seconds) / len(self.seconds) / self.share.num_layers

    @property
    def is_known(self) -> bool:
        """Are there enough passes to judge it by?"""
        return self.share.num_layers > 0 and len(self.seconds) == _LATEST
