"""A stage as a Ray actor."""

from __future__ import annotations

from pathlib import Path

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


class RayStage:
    """The actor; `open` loads the model, as Ray hides the cause of errors in a constructor."""

    def __init__(self) -> None:
        self._stage: Stage | None = None

    def open(
        self, name: str, model_dir: Path, memory_bytes: int, device: str, delay_s: float
    ) -> StageOffer:
        """Open the model; see `Stage`."""
        self._stage = Stage(name, model_dir, memory_bytes, device, delay_s=delay_s)
        return self._stage.offer()

    def is_open(self) -> bool:
        """Whether the model is open."""
        return self._stage is not None

    def offer(self) -> StageOffer:
        """See `Stage.offer`."""
        return self._opened().offer()

    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        """See `Stage.prepare`."""
        return self._opened().prepare(wanted)

    def take(self, share: LayerRange, client: str) -> StageLayers:
        """See `Stage.take`."""
        return self._opened().take(share, client)

    def run(self, request: PassRequest) -> PassReply:
        """See `Stage.run`."""
        return self._opened().run(request)

    def committed(self, request: CacheRequest) -> PackedTensor:
        """See `Stage.committed`."""
        return self._opened().committed(request)

    def _opened(self) -> Stage:
        """The opened stage."""
        assert self._stage is not None  # `open` is the first call
        return self._stage
