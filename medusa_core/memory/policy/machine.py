"""A machine as a policy sees it: three tiers, and what moves and computes between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from medusa_core.messages import Tier

# Rows of a pass, and seconds that one layer takes for them where its weights lie.
RateCurve = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class MachineRates:
    """Sizes and measured rates.

    A computer without a card has its memory, under a budget, as the device, and no tier between
    that and the disk.

    Attributes:
        device_bytes: What weights, cache and activations may take of the device that computes.
        memory_bytes: Of the computer's memory behind it; 0 where that is the device.
        disk_bytes: Of the disk.
        to_device: From memory to the device. [bytes/s]
        from_device: From the device to memory. [bytes/s]
        from_disk: From the disk to memory. [bytes/s]
        read_s: What each read of a disk takes, however little it brings. [s]
        to_disk: From memory to the disk. [bytes/s]
        copied: At which a processor's core copies rows into their places. [bytes/s]
        num_cores: Cores that compute.
        cache_on_device: At which attention reads a cache on the device. [bytes/s]
        cache_of_prompts: Likewise where rows of a prompt attend to each other, for each of them.
        cache_in_memory: At which the processor reads one in memory. [bytes/s]
        visit_s: What a layer takes besides for each batch, and for each sequence whose cached rows
            come from the disk. [s]
        layer_s: Times of a layer by rows, rising.
        head_s: Times of the projection to the vocabulary likewise.
        computing_beside: What computing keeps of its pace while a disk is read beside it, of 1.
        reading_beside: What reading keeps of its pace while something is computed beside it, of 1.
    """

    device_bytes: int
    memory_bytes: int
    disk_bytes: int
    to_device: float
    from_device: float
    from_disk: float
    read_s: float
    to_disk: float
    copied: float
    num_cores: int
    cache_on_device: float
    cache_of_prompts: float
    cache_in_memory: float
    visit_s: float
    layer_s: RateCurve
    head_s: RateCurve
    computing_beside: float = 1.0
    reading_beside: float = 1.0

    def room(self, tier: Tier) -> int:
        """Bytes of a tier."""
        rooms = (self.device_bytes, self.memory_bytes, self.disk_bytes)
        return dict(zip(Tier, rooms, strict=True))[tier]

    def with_room(self, tier: Tier, num_bytes: int = 1 << 60) -> MachineRates:
        """The same with other room on a tier, by default with more than anything needs."""
        if tier is Tier.DEVICE:
            return replace(self, device_bytes=num_bytes)
        if tier is Tier.MEMORY:
            return replace(self, memory_bytes=num_bytes)
        return replace(self, disk_bytes=num_bytes)


def seconds_at(curve: RateCurve, rows: float) -> float:
    """A curve's time between its points; beyond the last it grows as between the last two."""
    points = ((0, curve[0][1]), *curve)
    for (low, low_s), (high, high_s) in pairwise(points):
        if rows <= high:
            return low_s + (high_s - low_s) * (rows - low) / (high - low)
    (low, low_s), (high, high_s) = points[-2:]
    slope = max(0.0, high_s - low_s) / (high - low)
    return high_s + slope * (rows - high)


def seconds(num_bytes: float, rate: float) -> float:
    """Time to move so much; an infinite rate takes none."""
    return 0.0 if math.isinf(rate) else num_bytes / rate
