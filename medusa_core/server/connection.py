"""A connection whose requests must arrive in time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


class TimedConnection(H11Protocol):
    """Closes itself where a request's head doesn't arrive: half-open sockets hold nothing."""

    def __init__(self, *args: Any, head_s: float, **more: Any) -> None:
        """Serve a connection.

        Args:
            args: As of uvicorn's protocol.
            head_s: Seconds in which a head must have arrived.
            more: As of uvicorn's protocol.
        """
        super().__init__(*args, **more)
        self._head_s = head_s
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        """A request is awaited, or the one that came is under way."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._forget_head()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_s, self._close_late)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()
