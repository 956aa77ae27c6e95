"""Return memory of freed tensors from the C library's heap to the system."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any


def trim_heap() -> None:
    """Return freed heap memory to the system.

    glibc keeps it for the next allocation: after a switch of models that is most of the old model.
    Other allocators return large pieces at once.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """Return glibc's `malloc_trim`; None for other C libraries."""
    if platform.system() != "Linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
