"""The way to the stages of a cluster, whatever carries it: a process of this machine, or Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from medusa_core.runtime.cluster.order import (
    CacheOrder,
    Held,
    Offer,
    Order,
    Pace,
    Packed,
    Reply,
    Wanted,
)
from medusa_core.runtime.cluster.share import Share


class Line(Protocol):
    """The way to one stage: it does what `Stage` does, or raises StageLostError."""

    def offer(self) -> Offer:
        """What the machine says of itself."""

    def prepare(self, wanted: Wanted) -> Pace:
        """Settle how to compute, and measure it."""

    def take(self, share: Share, client: str) -> Held:
        """Read some layers, and forget others."""

    def run(self, order: Order) -> Reply:
        """One pass."""

    def committed(self, order: CacheOrder) -> Packed:
        """What a cache holds. [layers, 2, kv heads, length, head_dim]"""


class Cluster(Protocol):
    """The machines that offer layers.

    Attributes:
        name: Address of the cluster, for people.
    """

    name: str

    def lines(self) -> Mapping[str, Line]:
        """The ways to all stages that are there now, by their names.

        Raises:
            ClusterError: The cluster can't be reached.
        """

    def close(self) -> None:
        """Leave the cluster."""
