"""Which requests still wait for their last event, so that each of them gets exactly one."""

from __future__ import annotations

import logging
from collections.abc import Callable

from medusa_core.messages import (
    Calibrated,
    Cancel,
    CloseSession,
    Command,
    Counted,
    Event,
    Failed,
    GenerationDone,
    Message,
    ModelLoaded,
    Raced,
    Tokenized,
    Unloaded,
    Verified,
)

log = logging.getLogger(__name__)

_LAST = (
    Calibrated,
    Counted,
    Failed,
    GenerationDone,
    ModelLoaded,
    Raced,
    Tokenized,
    Unloaded,
    Verified,
)


class OpenRequests:
    """Forwards events, but no failure of a request that has ended."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        """Wait for nothing yet.

        Args:
            on_event: Gets the events.
        """
        self._on_event = on_event
        self._open: set[tuple[str, str]] = set()

    def begin(self, command: Command) -> None:
        """Note a command that a last event must follow; Cancel and CloseSession have none."""
        if not isinstance(command, Cancel | CloseSession):
            self._open.add(_key(command))

    def is_open(self, command: Message) -> bool:
        """Whether the last event of a command is still to come."""
        return _key(command) in self._open

    def send(self, event: Event) -> None:
        """Forward an event; what fails after a request's end is logged only."""
        if isinstance(event, Failed) and not self.is_open(event):
            log.warning("failed after its request had ended: %s", event.message)
            return
        if isinstance(event, _LAST):
            self._open.discard(_key(event))
        self._on_event(event)


def _key(message: Message) -> tuple[str, str]:
    return message.session_id, message.request_id
