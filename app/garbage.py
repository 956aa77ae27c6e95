"""Collects cyclic garbage in the window's thread alone.

Python collects in whichever thread happens to allocate. A cycle may hold widgets and timers, and Qt
must not lose those in the engine's thread or in one that hashes a download.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 2_000
_WHOLE_EVERY = 30  # collections of the young between two of everything


class Garbage(QObject):
    """Takes over from Python's own collector while it lives."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
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
        """Collect young garbage, and now and then all of it."""
        self._count += 1
        gc.collect(2 if self._count % _WHOLE_EVERY == 0 else 1)
