"""What a model runs on, and how much memory that has now: for people, every few seconds."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple

from medusa_core.memory.probe import live_budget
from medusa_core.models.precision import choose_device
from medusa_core.system import cuda

_CPU_INFO = Path("/proc/cpuinfo")


class MemoryNow(NamedTuple):
    """A device's memory.

    Attributes:
        name: What it is called.
        used_bytes: What all programs use.
        total_bytes: All there is.
    """

    name: str
    used_bytes: int
    total_bytes: int

    @property
    def free_bytes(self) -> int:
        """What is left."""
        return self.total_bytes - self.used_bytes


def memory_now(device: str) -> MemoryNow:
    """The memory of a device.

    Args:
        device: A torch device name; empty for the best there is.

    Raises:
        RequestError: There is no such device.
        RuntimeError: The device can't be asked.
    """
    budget = live_budget(device)
    chosen = choose_device(device)
    name = cuda.name(chosen) if chosen.type == "cuda" else processor_name()
    return MemoryNow(name, budget.other_bytes, budget.total_bytes)


@cache
def processor_name() -> str:
    """What the processor is called."""
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "Processor"
