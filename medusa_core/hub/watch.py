"""Progress and cancellation of a transfer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


class Stopped(Exception):  # noqa: N818 - not an error
    """The transfer was cancelled."""


@dataclass(frozen=True, slots=True)
class TransferMonitor:
    """Callbacks of a transfer: stored and fetched bytes, waiting, cancellation.

    Attributes:
        stop: Set to cancel it.
        fetched: Called with the number of bytes that arrived.
        stored: Called with the number of bytes that were written; negative if they are discarded.
        waits_for: Called with the reason of a wait, for people; empty when it ends.
    """

    stop: threading.Event
    fetched: Callable[[int], None]
    stored: Callable[[int], None]
    waits_for: Callable[[str], None]

    def check(self, _: int = 0) -> None:
        """Raise if the transfer was cancelled.

        Raises:
            Stopped: It was.
        """
        if self.stop.is_set():
            raise Stopped
