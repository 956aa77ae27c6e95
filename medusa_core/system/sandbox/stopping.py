"""How a long command is told to stop in order: by a signal, or by the end of its input."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C or a polite kill sets, so that a run pauses with all it has."""
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
    """Set the event when whoever began this closes its input, or is gone."""
    number = sys.stdin.fileno()

    def listen() -> None:
        # not through sys.stdin: its lock, held by a thread that reads, is fatal as Python ends
        while os.read(number, 1):
            pass
        stopped.set()

    threading.Thread(target=listen, name="medusa-watched", daemon=True).start()
