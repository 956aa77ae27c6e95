"""Rate limit of transfers, and detection of stalled servers."""

from __future__ import annotations

import threading
import time

from medusa_core.hub.settings import HubTimeouts
from medusa_core.i18n import tr


class RateLimiter:
    """Limits bytes per second over all connections."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_at_s = 0.0

    def throttle(self, nbytes: int, stop: threading.Event) -> None:
        """Wait until `nbytes` more bytes are within the rate limit.

        Args:
            nbytes: Bytes just received.
            stop: Ends the wait when set.
        """
        if not self._bytes_per_s:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at_s = max(self._free_at_s, now) + nbytes / self._bytes_per_s
            wait_s = self._free_at_s - now
        stop.wait(wait_s)


class StallDetector:
    """Decides when a server is given up; only time spent waiting for it counts."""

    def __init__(self, timeouts: HubTimeouts) -> None:
        self._timeouts = timeouts
        self._silent_s = 0.0
        self._window_s = 0.0
        self._window_bytes = 0

    def count(self, seconds: float, nbytes: int) -> str:
        """Record a wait.

        Args:
            seconds: Duration of the wait.
            nbytes: Bytes that arrived after it.

        Returns:
            Why the server is given up, for people; empty if it isn't.
        """
        timeouts = self._timeouts
        self._silent_s = 0.0 if nbytes else self._silent_s + seconds
        self._window_s += seconds
        self._window_bytes += nbytes
        if self._silent_s >= timeouts.stall_s:
            return tr("the server has been silent for {0:.0f} s", timeouts.stall_s)
        if self._window_s < timeouts.min_rate_window_s:
            return ""
        if self._window_bytes < timeouts.min_bytes_per_s * self._window_s:
            rate = self._window_bytes / self._window_s
            return tr("the server sends only {0:.0f} bytes a second", rate)
        self._window_s, self._window_bytes = 0.0, 0
        return ""
