"""Collection of cyclic garbage, which may hold a model's memory.

A thread that collects also deletes what other threads left. In a window that may be widgets, which
Qt can delete only in the window's thread: there the window collects for all threads.
"""

from __future__ import annotations

import gc
from collections.abc import Callable


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
