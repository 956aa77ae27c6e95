"""Stopping a long command in order: by a signal, or by closing its stdin."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT or SIGTERM sets, so that a run can save its state first."""
    stopped = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stopped.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_with_input(stopped: threading.Event) -> None:
    """Set an event when the parent closes this process's stdin, or ends."""
    number = sys.stdin.fileno()

    def listen() -> None:
        """Wait until stdin is closed."""
        # Not through sys.stdin: a reading thread holds its lock, and Python would crash at its end.
        while os.read(number, 1):
            pass
        stopped.set()

    threading.Thread(target=listen, name="medusa-watched", daemon=True).start()
