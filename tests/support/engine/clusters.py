"""Clusters within the test's process, whose stages can be lost, slow, or wrong in one way."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from medusa_core.errors import StageLostError
from medusa_core.runtime.cluster.connection import StageConnection
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
from medusa_core.runtime.cluster.stage import Stage

GIB = 1 << 30


class FragileConnection:
    """The way to a stage that may be lost.

    Attributes:
        num_runs: Passes that were asked for.
        dies_at: The pass in which it is lost; None for none.
        slowness: How many times as long as it says each pass takes.
        faulty: What becomes of orders on their way.
    """

    def __init__(self, stage: Stage) -> None:
        self.num_runs = 0
        self.dies_at: int | None = None
        self.slowness = 1.0
        self.faulty: Callable[[PassRequest], PassRequest] | None = None
        self.is_lost = False
        self._stage = stage
        self._name = stage.offer().name

    def offer(self) -> StageOffer:
        return self._alive().offer()

    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        return self._alive().prepare(wanted)

    def take(self, share: LayerRange, client: str) -> StageLayers:
        return self._alive().take(share, client)

    def run(self, order: PassRequest) -> PassReply:
        self.num_runs += 1
        if self.num_runs == self.dies_at:
            self.is_lost = True
        order = order if self.faulty is None else self.faulty(order)
        reply = self._alive().run(order)
        return replace(reply, compute_s=self.slowness)

    def committed(self, order: CacheRequest) -> PackedTensor:
        return self._alive().committed(order)

    def _alive(self) -> Stage:
        if self.is_lost:
            raise StageLostError(f"{self._name} is lost.", stage=self._name)
        return self._stage


class FragileCluster:
    """Stages that can be lost; who is lost isn't there any more."""

    def __init__(self, stages: list[Stage]) -> None:
        self.name = "the test"
        self.all = {stage.offer().name: FragileConnection(stage) for stage in stages}

    def connections(self) -> Mapping[str, StageConnection]:
        return {name: connection for name, connection in self.all.items() if not connection.is_lost}

    def close(self) -> None:
        """Do nothing, as no other process holds anything."""

    def add(self, stage: Stage) -> None:
        """Add a stage."""
        self.all[stage.offer().name] = FragileConnection(stage)


def cluster_of(folder: Path, num_stages: int, memory_bytes: int = GIB) -> FragileCluster:
    """A cluster of equal machines."""
    return FragileCluster([a_stage(folder, f"s{i}", memory_bytes) for i in range(num_stages)])


def a_stage(folder: Path, name: str, memory_bytes: int = GIB, layer_s: float = 1.0) -> Stage:
    """A machine of known speed."""
    return Stage(name, folder, memory_bytes, "cpu", layer_s)
