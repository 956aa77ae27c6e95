"""A machine as policies are searched for it: three tiers, and rates of moving and computing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from medusa_core.messages import Tier

# Rows of a pass and seconds of one resident layer for them.
RateCurve = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRates:
    """Capacities and measured rates.

    Without a card the device is the computer's memory under a budget, and there is no tier between
    it and the disk. Rates that are left out take no time.

    Attributes:
        device_bytes: Memory of the device for weights, KV rows and activations.
        memory_bytes: Host memory for them; 0 where that is the device.
        disk_bytes: Room on the disk.
        to_device: Link from host memory to the device. [bytes/s]
        from_device: Link back. [bytes/s]
        from_disk: Reads of the disk. [bytes/s]
        read_s: Latency of a read of the disk. [s]
        to_disk: Writes of the disk. [bytes/s]
        copied: Copies in memory by one core. [bytes/s]
        num_cores: Cores that compute.
        cache_on_device: KV rows that attention reads on the device. [bytes/s]
        cache_of_prompts: As `cache_on_device`, for each row of a prompt.
        cache_in_memory: KV rows that the CPU attends to in host memory. [bytes/s]
        visit_s: Overhead of a layer per batch, and per sequence with KV rows on the disk. [s]
        layer_s: Seconds of a resident layer by rows.
        head_s: Seconds of the output projection by rows.
        computing_beside: Share of its pace that computing keeps while a disk is read.
        reading_beside: Share of its pace that reading keeps while something is computed.
    """

    device_bytes: int
    memory_bytes: int = 0
    disk_bytes: int = 0
    to_device: float = math.inf
    from_device: float = math.inf
    from_disk: float = math.inf
    read_s: float = 0.0
    to_disk: float = math.inf
    copied: float = math.inf
    num_cores: int = 1
    cache_on_device: float = math.inf
    cache_of_prompts: float = math.inf
    cache_in_memory: float = math.inf
    visit_s: float = 0.0
    layer_s: RateCurve
    head_s: RateCurve
    computing_beside: float = 1.0
    reading_beside: float = 1.0

    def room(self, tier: Tier) -> int:
        """Capacity of a tier in bytes."""
        rooms = (self.device_bytes, self.memory_bytes, self.disk_bytes)
        return dict(zip(Tier, rooms, strict=True))[tier]

    def with_room(self, tier: Tier, num_bytes: int = 1 << 60) -> MachineRates:
        """Return the machine with another capacity of a tier; by default with unlimited room."""
        if tier is Tier.DEVICE:
            return replace(self, device_bytes=num_bytes)
        if tier is Tier.MEMORY:
            return replace(self, memory_bytes=num_bytes)
        return replace(self, disk_bytes=num_bytes)


def seconds_at(curve: RateCurve, rows: float) -> float:
    """Interpolate a curve; beyond its last point the slope of the last two continues."""
    points = ((0, curve[0][1]), *curve)
    for (low, low_s), (high, high_s) in pairwise(points):
        if rows <= high:
            return low_s + (high_s - low_s) * (rows - low) / (high - low)
    (low, low_s), (high, high_s) = points[-2:]
    slope = max(0.0, high_s - low_s) / (high - low)
    return high_s + slope * (rows - high)


def transfer_s(num_bytes: float, rate: float) -> float:
    """Seconds of a transfer; an infinite rate takes none."""
    return 0.0 if math.isinf(rate) else num_bytes / rate
