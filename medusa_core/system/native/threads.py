"""Spreads calls of the compiled library over threads; such calls release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from medusa_core.system import compute_threads

_MIN_WEIGHTS = 1 << 20  # of a thread: less takes hardly longer than starting it


def for_ranges(call: Callable[[int, int], object], count: int, weights: int, step: int = 1) -> None:
    """Call a function for consecutive ranges that cover 0 to `count`, on several threads.

    Args:
        call: Gets first and number of each range.
        count: Number of items.
        weights: Number of weights of all items.
        step: Ranges begin at multiples of this.
    """
    threads = max(1, min(compute_threads.count(), weights // _MIN_WEIGHTS))
    size = -(-count // threads // step) * step
    ranges = [(first, min(size, count - first)) for first in range(0, count, size)]
    if len(ranges) == 1:
        call(*ranges[0])
        return
    with ThreadPoolExecutor(len(ranges) - 1, "medusa-repack") as executor:
        others = [executor.submit(call, *one) for one in ranges[1:]]
        call(*ranges[0])
        for other in others:
            other.result()
