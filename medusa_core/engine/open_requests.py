"""Open requests: ensure that each one gets exactly one final event."""

from __future__ import annotations

import logging
from collections.abc import Callable

from medusa_core.messages import (
    FINAL_EVENTS,
    Cancel,
    CloseSession,
    Command,
    Event,
    Failed,
    Message,
)

log = logging.getLogger(__name__)


class OpenRequests:
    """Forwards events, except failures of requests that have already ended."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        """Start without open requests.

        Args:
            on_event: Receives the forwarded events.
        """
        self._on_event = on_event
        self._open: set[tuple[str, str]] = set()

    def begin(self, command: Command) -> None:
        """Open a request for a command; Cancel and CloseSession have no final event."""
        if not isinstance(command, Cancel | CloseSession):
            self._open.add(command.ids)

    def is_open(self, command: Message) -> bool:
        """Whether a command's final event hasn't been sent yet."""
        return command.ids in self._open

    def send(self, event: Event) -> None:
        """Forward an event; a failure after the request's end is only logged."""
        if isinstance(event, Failed) and not self.is_open(event):
            log.warning("failed after its request had ended: %s", event.message)
            return
        if isinstance(event, FINAL_EVENTS):
            self._open.discard(event.ids)
        self._on_event(event)
