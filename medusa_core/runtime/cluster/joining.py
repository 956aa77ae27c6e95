"""The cluster at an address."""

from __future__ import annotations

from medusa_core.runtime.cluster.connection import Cluster


def join_cluster(address: str) -> Cluster:
    """The cluster at HOST:PORT.

    Raises:
        ClusterError: It can't be reached, or Ray isn't installed.
    """
    from medusa_core.runtime.cluster.ray_cluster import RayCluster

    return RayCluster(address)
