"""Collection of cyclic garbage, which may hold a model's memory, and of freed heap memory.

A thread that collects also deletes what other threads left. In a window that may be widgets, which
Qt can delete only in the window's thread: there the window collects for all threads.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from collections.abc import Callable
from functools import cache
from typing import Any


def _collect_here() -> bool:
    """Collect in the calling thread."""
    gc.collect()
    return True


_collect: Callable[[], bool] = _collect_here


def collect_garbage() -> bool:
    """Collect cyclic garbage of all generations, in a thread that may delete it.

    Returns:
        Whether it is collected; otherwise a later collection will.
    """
    return _collect()


def collect_by(collect: Callable[[], bool] = _collect_here) -> None:
    """Set the function that collects for all threads; by default the calling thread collects."""
    global _collect
    _collect = collect


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
