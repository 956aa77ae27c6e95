"""Who watches a transfer, and how it is told to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


class Stopped(Exception):  # noqa: N818 - asked for, not an error
    """Somebody asked for the end."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Who watches a transfer.

    Attributes:
        stop: Set to end it.
        fetched: Called with bytes that arrived.
        settled: Called with bytes that are right on the disk, negative if they turn out wrong.
        waits_for: Called with what it waits for; empty when it goes on.
    """

    stop: threading.Event
    fetched: Callable[[int], None]
    settled: Callable[[int], None]
    waits_for: Callable[[str], None]

    def check(self, _: int = 0) -> None:
        """End the work if that was asked for.

        Raises:
            Stopped: It was.
        """
        if self.stop.is_set():
            raise Stopped
