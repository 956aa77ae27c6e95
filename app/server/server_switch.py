"""Switch of the window's server, with its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal

from medusa_core.errors import MedusaError


class ServerPhase(Enum):
    """Phase of a server."""

    OFF = "off"
    STARTING = "starting"
    ON = "on"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """State of the server.

    Attributes:
        phase: Its phase.
        address: Its base URL; empty unless it is on.
        problem: Its error; None unless it failed.
    """

    phase: ServerPhase = ServerPhase.OFF
    address: str = ""
    problem: MedusaError | None = None


class ServerEvents(QObject):
    """Events of a server, emitted in the window's thread.

    Signals:
        ready: The server listens at an address.
        failed: The server failed with a `MedusaError`.
        served: A request has ended, as a `RequestRecord`.
        model_wanted: A request needs the sleeping model.
    """

    ready = Signal(str)
    failed = Signal(object)
    served = Signal(object)
    model_wanted = Signal()


class RunningServer(Protocol):
    """Interface of a server."""

    def start(self) -> None:
        """Start the server; `ready` or `failed` is emitted afterwards."""

    def stop(self) -> None:
        """Stop the server, and cancel its requests."""


# Makes a server for a port; raises MedusaError where it can't.
MakeServer = Callable[[int, ServerEvents], RunningServer]


class ServerSwitch(QObject):
    """Turns the server on and off.

    Attributes:
        status: State of the server.

    Signals:
        changed: The state changed.
        served: A request has ended, as a `RequestRecord`.
        model_wanted: A request needs the sleeping model.
    """

    changed = Signal()
    served = Signal(object)
    model_wanted = Signal()

    def __init__(self, make_server: MakeServer) -> None:
        """Create the switch; the server is off.

        Args:
            make_server: Creates a server for a port.
        """
        super().__init__()
        self._make_server = make_server
        self._server: RunningServer | None = None
        self._events: ServerEvents | None = None
        self._port = 0
        self.status = ServerStatus()

    @property
    def is_on(self) -> bool:
        """Whether the server is on or starting."""
        return self.status.phase in (ServerPhase.STARTING, ServerPhase.ON)

    def turn_on(self, port: int) -> None:
        """Start the server at a local port, unless it runs there already."""
        if self._server is not None:
            if port == self._port:
                return
            self.turn_off()
        self._port = port
        queued = Qt.ConnectionType.QueuedConnection
        self._events = events = ServerEvents(self)
        events.ready.connect(self._show_ready, queued)
        events.failed.connect(self._show_failed, queued)
        events.served.connect(self.served, queued)
        events.model_wanted.connect(self.model_wanted, queued)
        try:
            self._server = self._make_server(port, events)
        except MedusaError as error:
            self._forget()
            self._become(ServerStatus(ServerPhase.FAILED, problem=error))
            return
        self._become(ServerStatus(ServerPhase.STARTING))
        self._server.start()

    def restart(self) -> None:
        """Start the server again, if it is on, because its settings have changed."""
        if self._server is not None:
            self.turn_off()
            self.turn_on(self._port)

    def turn_off(self) -> None:
        """Stop the server, and cancel its requests."""
        server = self._forget()
        if server is not None:
            server.stop()
        self._become(ServerStatus())

    def _show_ready(self, address: str) -> None:
        if self.status.phase is ServerPhase.STARTING:  # else it was turned off meanwhile
            self._become(ServerStatus(ServerPhase.ON, address))

    def _show_failed(self, error: MedusaError) -> None:
        if self.is_on:
            self._forget()
            self._become(ServerStatus(ServerPhase.FAILED, problem=error))

    def _forget(self) -> RunningServer | None:
        """Disconnect from a server."""
        server, self._server = self._server, None
        if self._events is not None:
            self._events.ready.disconnect(self._show_ready)
            self._events.failed.disconnect(self._show_failed)
            self._events.served.disconnect(self.served)
            self._events.model_wanted.disconnect(self.model_wanted)
            self._events.deleteLater()
            self._events = None
        return server

    def _become(self, status: ServerStatus) -> None:
        self.status = status
        self.changed.emit()
