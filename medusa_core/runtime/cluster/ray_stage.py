"""A stage in a process of Ray's."""

from __future__ import annotations

from pathlib import Path

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
from medusa_core.runtime.cluster.stage import Stage


class RayStage:
    """An actor; it begins empty, so that a model that can't be opened is told as what it is."""

    def __init__(self) -> None:
        self._stage: Stage | None = None

    def open(
        self, name: str, model_dir: Path, memory_bytes: int, device: str, delay_s: float
    ) -> Offer:
        """Offer layers; see `Stage`."""
        self._stage = Stage(name, model_dir, memory_bytes, device, delay_s=delay_s)
        return self._stage.offer()

    def is_open(self) -> bool:
        """Does it offer layers yet?"""
        return self._stage is not None

    def offer(self) -> Offer:
        """See `Stage`."""
        return self._opened().offer()

    def prepare(self, wanted: Wanted) -> Pace:
        """See `Stage`."""
        return self._opened().prepare(wanted)

    def take(self, share: Share, client: str) -> Held:
        """See `Stage`."""
        return self._opened().take(share, client)

    def run(self, order: Order) -> Reply:
        """See `Stage`."""
        return self._opened().run(order)

    def committed(self, order: CacheOrder) -> Packed:
        """See `Stage`."""
        return self._opened().committed(order)

    def _opened(self) -> Stage:
        assert self._stage is not None  # whoever made the actor opens it first
        return self._stage
