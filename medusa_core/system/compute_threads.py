"""The number of CPU threads that torch computes with; only this module sets it.

Torch's setting is awkward to share: a thread that computes for the first time takes the number
that any other thread set last. The engine limits torch to one thread while it drafts, so that a
measurement that began in another thread at that moment would run, and be remembered, with one
thread. `count` therefore ignores temporary limits of other threads, and measurements set its
result in the thread in which they run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class _Limits(threading.local):
    """Temporary limits of the calling thread.

    Attributes:
        own: Limit of the calling thread; 0 for none.
    """

    own = 0
    lock = threading.Lock()
    num_active = 0  # in all threads
    unlimited = 0  # the number without them


_limits = _Limits()


def count() -> int:
    """Number of threads for computing, without temporary limits of other threads."""
    if _limits.own:
        return _limits.own
    with _Limits.lock:
        return _Limits.unlimited if _Limits.num_active else torch.get_num_threads()


def use(num_threads: int) -> None:
    """Compute with `num_threads` threads from now on."""
    torch.set_num_threads(num_threads)
    with _Limits.lock:
        _Limits.unlimited = num_threads


@contextmanager
def limited(num_threads: int) -> Iterator[None]:
    """Compute with `num_threads` threads for a while, in the calling thread.

    Torch's own threads stay awake for milliseconds after an operation, on cores that the compiled
    step needs by then: so drafts between its passes are limited to one.
    """
    outer, before = _limits.own, torch.get_num_threads()
    with _Limits.lock:
        if not _Limits.num_active:
            _Limits.unlimited = before
        _Limits.num_active += 1
    _limits.own = num_threads
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _limits.own = outer
        with _Limits.lock:
            _Limits.num_active -= 1
