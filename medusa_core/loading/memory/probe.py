"""Measure the memory of this machine's devices. Torch is imported by the functions that need it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil

from medusa_core.errors import RequestError
from medusa_core.loading.memory.budget import (
    DECODING_BYTES,
    GIB,
    Budget,
    DeviceOffer,
    wddm_reserve_bytes,
)
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.messages import LoadOptions

OWN_MEMORY = "this computer's memory"  # the name of a budget that is no card's
PROCESSOR, CARD, NO_CARD = "Processor", "Graphics card", "This torch finds no CUDA device."
# Torch and its libraries; the window's share is small in comparison.
_CPU_RUNTIME_BYTES = GIB // 2
_RESERVED_BYTES = 2 * GIB  # of this computer's memory, for everything but layers
_CPU_INFO = Path("/proc/cpuinfo")


class MemoryStatus(NamedTuple):
    """Memory of a device.

    Attributes:
        name: Name of the device, for people.
        used_bytes: Used by all programs.
        total_bytes: Capacity.
    """

    name: str
    used_bytes: int
    total_bytes: int

    @property
    def free_bytes(self) -> int:
        """Bytes that no program uses."""
        return self.total_bytes - self.used_bytes


def memory_status(device: str) -> MemoryStatus:
    """Measure the memory of a device; slow, so call it in a thread.

    Args:
        device: Torch device name; empty for the best there is.

    Raises:
        RequestError: There is no such device.
        RuntimeError: The driver failed.
    """
    from medusa_core.models.precision import choose_device
    from medusa_core.system import cuda

    budget = live_budget(device)
    chosen = choose_device(device)
    name = cuda.name(chosen) if chosen.type == "cuda" else processor_name()
    return MemoryStatus(name, budget.other_bytes, budget.total_bytes)


@cache
def processor_name() -> str:
    """Return the name of the processor."""
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "Processor"


def offered_devices() -> tuple[DeviceOffer, ...]:
    """Return what models can run on: the engine's choice first, each card, and the processor."""
    from medusa_core.system import cuda

    processor = DeviceOffer("cpu", PROCESSOR)
    cards = tuple(_offered_card(index) for index in range(cuda.num_cards()))
    best = next((offer for offer in cards if not offer.lack), processor)
    if not cards:
        cards = (DeviceOffer("cuda", CARD, NO_CARD),)
    return (DeviceOffer("", best.label), *cards, processor)


def _offered_card(index: int) -> DeviceOffer:
    """A card as a choice for users, with the reason if it can't be used."""
    import torch

    from medusa_core.models.precision import choose_device
    from medusa_core.system import cuda

    name = f"cuda:{index}"
    lack = ""
    try:
        choose_device(name)
    except RequestError as error:
        lack = error.message
    return DeviceOffer(name, cuda.name(torch.device(name)), lack)


def offload_room(options: LoadOptions) -> OffloadRoom:
    """Return the room for layers that don't fit: host memory of a card, and the disk of a load."""
    from medusa_core.models.precision import choose_device

    memory = 0
    if choose_device(options.device).type == "cuda":
        memory = max(0, psutil.virtual_memory().available - _RESERVED_BYTES)
    return OffloadRoom(memory, options.tier_disk)


def live_budget(device: str = "", own_bytes: int = 0) -> Budget:
    """Measure the memory of a device.

    Args:
        device: Torch device name; empty for CUDA where there is one, else the CPU.
        own_bytes: Bytes of it that unloading the present model would free.

    Raises:
        RequestError: There is no such device.
    """
    from medusa_core.models.precision import choose_device, hardware_of
    from medusa_core.system import cuda

    chosen = choose_device(device)
    if chosen.type == "cuda":
        free, total = cuda.free_and_total_bytes(chosen)
        name = cuda.name(chosen)
        # This query has created the CUDA context, which counts as used.
        runtime, kept_free = DECODING_BYTES, wddm_reserve_bytes(total)
    else:
        memory = psutil.virtual_memory()
        free, total, name = memory.available, memory.total, OWN_MEMORY
        held = psutil.Process().memory_info().rss - own_bytes
        runtime, kept_free = max(0, _CPU_RUNTIME_BYTES - held), 0
    return Budget(
        name=name,
        hardware=hardware_of(chosen),
        total_bytes=total,
        other_bytes=max(0, total - free - own_bytes) + kept_free,
        runtime_bytes=runtime,
        is_live=True,
    )
