"""Collects cyclic garbage in the window's thread alone.

Python collects in whichever thread happens to allocate. A cycle may hold widgets and timers, and Qt
must not lose those in the engine's thread or in one that hashes a download.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 2_000
_WHOLE_EVERY = 30  # collections of the young between two of everything


class GcScheduler(QObject):
    """Takes over from Python's own collector while it lives.

    Args:
        is_busy: Whether something goes on that must not stall: a whole collection waits meanwhile.
    """

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        super().__init__()
        self._num_young = 0
        self._is_busy = is_busy
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY_MS)
        self._timer.timeout.connect(self.collect)

    def start(self) -> None:
        """Collect here from now on, and nowhere else."""
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        """Let Python collect by itself again."""
        self._timer.stop()
        gc.enable()

    def collect(self) -> None:
        """Collect young garbage; now and then, while nothing goes on, all of it.

        All of it takes 75 ms where the recordings are full.
        """
        is_due = self._num_young >= _WHOLE_EVERY and not self._is_busy()
        self._num_young = 0 if is_due else self._num_young + 1
        gc.collect(2 if is_due else 1)
