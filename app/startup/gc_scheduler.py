"""Collects cyclic garbage only in the window's thread.

Python collects in whichever thread allocates. A cycle may include widgets and timers, which Qt
must not delete in another thread.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from medusa_core.system import garbage

_EVERY_MS = 2_000
_MOST_WAIT_S = 0.3  # of an engine's thread: the window may be waiting for the engine
_WHOLE_EVERY = 30  # collections of the young between two of everything


class GcScheduler(QObject):
    """Replaces Python's automatic collection while it runs, and collects for the engine's threads.

    Args:
        is_busy: Returns whether something runs that must not stall, which delays full collections.
    """

    _asked = Signal(object)  # threading.Event, which is set when all garbage is collected

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        super().__init__()
        self._num_young = 0
        self._is_busy = is_busy
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY_MS)
        self._timer.timeout.connect(self.collect)
        self._asked.connect(self._collect_all, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Replace automatic collection."""
        gc.disable()
        garbage.collect_by(self._collect_here)
        self._timer.start()

    def stop(self) -> None:
        """Restore automatic collection."""
        self._timer.stop()
        garbage.collect_by()
        gc.enable()

    def collect(self) -> None:
        """Collect the young generation; sometimes, when idle, all generations.

        A full collection takes 75 ms with full recordings.
        """
        is_due = self._num_young >= _WHOLE_EVERY and not self._is_busy()
        self._num_young = 0 if is_due else self._num_young + 1
        gc.collect(2 if is_due else 1)

    def _collect_here(self) -> bool:
        """Let the window's thread collect, and return whether it did in time."""
        if threading.current_thread() is threading.main_thread():
            gc.collect()
            return True
        done = threading.Event()
        self._asked.emit(done)
        return done.wait(_MOST_WAIT_S)

    def _collect_all(self, done: threading.Event) -> None:
        """Collect all generations for another thread."""
        gc.collect()
        done.set()
