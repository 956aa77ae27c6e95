"""The way to the stages of a cluster, whatever carries it: a process of this machine, or Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from medusa_core.runtime.cluster.layer_range import LayerRange
from medusa_core.runtime.cluster.protocol import (
    CacheRequest,
    ComputeSettings,
    PackedTensor,
    PassReply,
    PassRequest,
    StageLayers,
    StageOffer,
    StageSpeed,
)


class StageConnection(Protocol):
    """The way to one stage: it does what `Stage` does, or raises `StageLostError(stage=NAME)`.

    The name is that of `offer()`, by which `Cluster.connections` knows it until it is lost.
    """

    def offer(self) -> StageOffer:
        """What the machine says of itself."""

    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        """Settle how to compute, and measure it."""

    def take(self, share: LayerRange, client: str) -> StageLayers:
        """Read some layers, and forget others."""

    def run(self, order: PassRequest) -> PassReply:
        """One pass."""

    def committed(self, order: CacheRequest) -> PackedTensor:
        """What a cache holds. [layers, 2, kv heads, length, head_dim]"""


class Cluster(Protocol):
    """The machines that offer layers.

    Attributes:
        name: Address of the cluster, for people.
    """

    name: str

    def connections(self) -> Mapping[str, StageConnection]:
        """The ways to all stages that are there now, by their names.

        Raises:
            ClusterError: The cluster can't be reached.
        """

    def close(self) -> None:
        """Leave the cluster."""
