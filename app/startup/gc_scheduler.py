"""Collects cyclic garbage only in the window's thread.

Python collects in whichever thread allocates. A cycle may include widgets and timers, which Qt
must not delete in another thread.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 2_000
_WHOLE_EVERY = 30  # collections of the young between two of everything


class GcScheduler(QObject):
    """Replaces Python's automatic collection while it runs.

    Args:
        is_busy: Returns whether something runs that must not stall, which delays full collections.
    """

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        super().__init__()
        self._num_young = 0
        self._is_busy = is_busy
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY_MS)
        self._timer.timeout.connect(self.collect)

    def start(self) -> None:
        """Replace automatic collection."""
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        """Restore automatic collection."""
        self._timer.stop()
        gc.enable()

    def collect(self) -> None:
        """Collect the young generation; sometimes, when idle, all generations.

        A full collection takes 75 ms with full recordings.
        """
        is_due = self._num_young >= _WHOLE_EVERY and not self._is_busy()
        self._num_young = 0 if is_due else self._num_young + 1
        gc.collect(2 if is_due else 1)
