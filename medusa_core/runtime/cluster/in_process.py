"""A cluster within this process: for tests, and to see what dividing a model costs by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medusa_core.runtime.cluster.line import Line
from medusa_core.runtime.cluster.stage import Stage


class InProcessCluster:
    """Stages that are called directly; see `Cluster`."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.name = "this process"
        self._stages = {stage.offer().name: stage for stage in stages}

    def lines(self) -> Mapping[str, Line]:
        return dict(self._stages)

    def close(self) -> None:
        """Nothing is held elsewhere."""
