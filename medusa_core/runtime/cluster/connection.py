"""Interfaces of a cluster and its stages, independent of Ray."""

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
    """A remote `Stage`; each method may raise `StageLostError(stage=NAME)`.

    The name is that of `offer()`, and the key in `Cluster.connections` until the stage is lost.
    """

    def offer(self) -> StageOffer:
        """See `Stage.offer`."""

    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        """See `Stage.prepare`."""

    def take(self, share: LayerRange, client: str) -> StageLayers:
        """See `Stage.take`."""

    def run(self, request: PassRequest) -> PassReply:
        """See `Stage.run`."""

    def committed(self, request: CacheRequest) -> PackedTensor:
        """See `Stage.committed`."""


class Cluster(Protocol):
    """The machines that offer to compute layers.

    Attributes:
        name: Address of the cluster, for people.
    """

    name: str

    def connections(self) -> Mapping[str, StageConnection]:
        """Return the stages that are available now, by name.

        Raises:
            ClusterError: The cluster can't be reached.
        """

    def close(self) -> None:
        """Leave the cluster."""


def join_cluster(address: str) -> Cluster:
    """Join the cluster at HOST:PORT as a client.

    Raises:
        ClusterError: It can't be reached.
        MissingExtraError: Ray isn't installed.
    """
    from medusa_core.runtime.cluster.ray_cluster import RayCluster  # Ray is an extra

    return RayCluster(address)
