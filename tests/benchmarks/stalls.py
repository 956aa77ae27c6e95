"""How old this process is, and how long its window hung."""

from __future__ import annotations

import os
import time
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer

TICK_MS = 5
IMPORTED_S = time.monotonic()


def process_age_s() -> float:
    """Seconds since this process began; on systems without /proc, since this file was imported."""
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return time.monotonic() - IMPORTED_S
    # The name in parentheses may hold spaces; the start is the 20th field after it.
    ticks = int(stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19])
    started_s = ticks / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


class StallProbe(QObject):
    """Timer that ticks every few milliseconds and records the longest delay of a tick.

    Attributes:
        longest_stall_ms: Longest lateness so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.longest_stall_ms = 0.0
        self._last_s = 0.0
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)

    def start(self) -> None:
        """Begin to tick."""
        self._last_s = time.monotonic()
        self._timer.start()

    def stop(self) -> None:
        """End."""
        self._timer.stop()

    def _tick(self) -> None:
        now_s = time.monotonic()
        late_ms = (now_s - self._last_s) * 1000 - TICK_MS
        self.longest_stall_ms = max(self.longest_stall_ms, late_ms)
        self._last_s = now_s
