"""How fast bytes may come, and how slowly they still may."""

from __future__ import annotations

import threading
import time

from medusa_core.hub.settings import HubTimeouts


class Limiter:
    """Bytes a second over all connections."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_at_s = 0.0

    def pass_bytes(self, nbytes: int, stop: threading.Event) -> None:
        """Wait until so many bytes may pass."""
        if not self._bytes_per_s:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at_s = max(self._free_at_s, now) + nbytes / self._bytes_per_s
            wait_s = self._free_at_s - now
        stop.wait(wait_s)


class Waiting:
    """Time spent on a server, and what it brought; time spent on disk or limits doesn't count."""

    def __init__(self, patience: HubTimeouts) -> None:
        self._patience = patience
        self._silent_s = 0.0
        self._window_s = 0.0
        self._window_bytes = 0

    def count(self, seconds: float, nbytes: int) -> str:
        """Take note of a wait.

        Args:
            seconds: How long it was.
            nbytes: What it brought.

        Returns:
            Why the server is given up; empty if it isn't.
        """
        patience = self._patience
        self._silent_s = 0.0 if nbytes else self._silent_s + seconds
        self._window_s += seconds
        self._window_bytes += nbytes
        if self._silent_s >= patience.stall_s:
            return f"the server has been silent for {patience.stall_s:.0f} s"
        if self._window_s < patience.least_rate_over_s:
            return ""
        if self._window_bytes < patience.least_bytes_per_s * self._window_s:
            rate = self._window_bytes / self._window_s
            return f"the server sends only {rate:.0f} bytes a second"
        self._window_s, self._window_bytes = 0.0, 0
        return ""
