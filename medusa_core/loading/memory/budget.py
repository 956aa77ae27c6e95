"""Capacity and use of a device's memory. Nothing here needs torch."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

from medusa_core.errors import RequestError
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.runner.buckets import MAX_GRAPHS
from medusa_core.system.native.cuda import BLOCK_TYPES

GIB = 1 << 30
# A desktop holds 0.3 to 0.8 GiB of a card.
_DESKTOP_BYTES = GIB // 2
# What decoding takes of a card beside tensors: a graph for each number of rows, each about 24 MiB,
# and the workspace of cuBLAS.
DECODING_BYTES = MAX_GRAPHS * (24 << 20) + (32 << 20)
# CUDA's context and the kernels of torch and bitsandbytes (0.3 to 0.5 GiB), and the above.
RUNTIME_BYTES = GIB // 2 + DECODING_BYTES
# Windows' driver model moves a full card's memory to the host without an error: keep this free.
_WDDM_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Budget:
    """A device's memory.

    Attributes:
        name: Name for people.
        hardware: Type and capabilities of the device.
        total_bytes: Capacity in bytes.
        other_bytes: Bytes used by other programs.
        runtime_bytes: Bytes needed by this program before any model.
        is_live: The sizes are measured, not assumed.
        reserved_bytes: Bytes that stay free for an embedding model.
    """

    name: str
    hardware: Hardware
    total_bytes: int
    other_bytes: int
    runtime_bytes: int
    is_live: bool
    reserved_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeviceOffer:
    """A device that a user can choose.

    Attributes:
        device: Torch device name; empty leaves the choice to the engine.
        label: Name for people; with an empty `device` that of the engine's choice.
        lack: Why it can't be chosen; empty if it can.
    """

    device: str
    label: str
    lack: str = ""


def limit_budget(budget: Budget, memory_gib: float) -> Budget:
    """Return the part of a device's free memory that may be used, as a device of its own.

    Memory that this program needs before any model isn't part of it.

    Args:
        budget: The device.
        memory_gib: Upper limit; 0 for all that is free.

    Raises:
        RequestError: The limit isn't a number.
    """
    if not memory_gib:
        return budget
    if math.isnan(memory_gib):
        raise RequestError("A budget of nan GiB is none.", "Give a number of GiB to --memory-gib.")
    free = budget.total_bytes - budget.other_bytes - budget.runtime_bytes
    return replace(
        budget,
        name=f"{memory_gib:g} GiB of {budget.name}",
        total_bytes=round(min(memory_gib * GIB, free)),
        other_bytes=0,
        runtime_bytes=0,
    )


def cuda_budget(vram_gib: float, capability: tuple[int, int] = (8, 6)) -> Budget:
    """Return the budget of a hypothetical card that drives a desktop; by default an RTX 30."""
    return Budget(
        name=f"a card with {vram_gib:g} GiB",
        hardware=Hardware("cuda", capability, block_types=BLOCK_TYPES),
        total_bytes=round(vram_gib * GIB),
        other_bytes=_DESKTOP_BYTES + wddm_reserve_bytes(round(vram_gib * GIB)),
        runtime_bytes=RUNTIME_BYTES,
        is_live=False,
    )


def wddm_reserve_bytes(total_bytes: int) -> int:
    """Return the part of a card's memory that its driver needs free: none except on Windows."""
    return round(total_bytes * _WDDM_SHARE) if sys.platform == "win32" else 0
