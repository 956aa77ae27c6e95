"""The memory of this machine's devices, now."""

from __future__ import annotations

import psutil
import torch

from medusa_core.errors import RequestError
from medusa_core.memory.budget import GIB, RUNTIME_BYTES, Budget, DeviceOffer
from medusa_core.memory.placement import OffloadRoom
from medusa_core.messages import LoadOptions
from medusa_core.models.precision import choose_device, hardware_of
from medusa_core.system import cuda

# Torch and its libraries; the window's share is small beside them.
OWN_MEMORY = "this computer's memory"  # the name of a budget that is no card's
PROCESSOR, CARD, NO_CARD = "Processor", "Graphics card", "This torch finds no CUDA device."
_CPU_RUNTIME_BYTES = GIB // 2
_LEFT_BYTES = 2 * GIB  # of this computer's memory, for everything but layers


def offered_devices() -> tuple[DeviceOffer, ...]:
    """What models can run on here: the engine's choice first, each card, and the processor."""
    processor = DeviceOffer("cpu", PROCESSOR)
    cards = tuple(_offered_card(index) for index in range(cuda.num_cards()))
    best = next((offer for offer in cards if not offer.lack), processor)
    if not cards:
        cards = (DeviceOffer("cuda", CARD, NO_CARD),)
    return (DeviceOffer("", best.label), *cards, processor)


def _offered_card(index: int) -> DeviceOffer:
    name = f"cuda:{index}"
    lack = ""
    try:
        choose_device(name)
    except RequestError as error:
        lack = error.message
    return DeviceOffer(name, cuda.name(torch.device(name)), lack)


def offload_room(options: LoadOptions) -> OffloadRoom:
    """Return the room for layers that don't fit: host memory of a card, and the disk of a load."""
    memory = 0
    if choose_device(options.device).type == "cuda":
        memory = max(0, psutil.virtual_memory().available - _LEFT_BYTES)
    return OffloadRoom.of(memory, options)


def live_budget(device: str = "", own_bytes: int = 0) -> Budget:
    """What a device has.

    Args:
        device: A torch device name; empty for CUDA where there is one, else the CPU.
        own_bytes: What this program's loaded model holds there, which a swap would free.

    Raises:
        RequestError: There is no such device.
    """
    chosen = choose_device(device)
    if chosen.type == "cuda":
        free, total = cuda.free_and_total_bytes(chosen)
        name = cuda.name(chosen)
        # The context exists once this was asked: it is among what is used.
        runtime = 0
    else:
        memory = psutil.virtual_memory()
        free, total, name = memory.available, memory.total, OWN_MEMORY
        held = psutil.Process().memory_info().rss - own_bytes
        runtime = max(0, _CPU_RUNTIME_BYTES - held)
    return Budget(
        name=name,
        hardware=hardware_of(chosen),
        total_bytes=total,
        other_bytes=max(0, total - free - own_bytes),
        runtime_bytes=runtime if chosen.type == "cpu" else min(RUNTIME_BYTES, runtime),
        is_live=True,
    )
