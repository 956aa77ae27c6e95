"""A server in a thread of its own, over the engine that the window uses."""

from __future__ import annotations

import asyncio
import logging
import threading

from app.server.server_keeper import ServerEvents
from medusa_core.client import Client
from medusa_core.errors import EngineError, MedusaError
from medusa_core.server.served_models import LoadedOnly
from medusa_core.server.server import Server, ServerOptions
from medusa_core.server.shared_engine import SharedEngine

log = logging.getLogger(__name__)

_STOP_S = 5.0


class ServerThread:
    """Serves from `start` to `stop`."""

    def __init__(self, shared: SharedEngine, port: int, events: ServerEvents) -> None:
        """Prepare a server that only this computer reaches.

        Args:
            shared: The engine.
            port: Where to listen.
            events: Learn what becomes of it.
        """
        self._events = events
        self._server = Server(
            ServerOptions(port=port),
            lambda: Client(shared.join),
            LoadedOnly(),
            events.served.emit,
        )
        self._thread = threading.Thread(target=self._run, name="medusa-server", daemon=True)

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End it; safe to call twice."""
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._server.serve(self._events.ready.emit))
        except MedusaError as error:
            self._events.failed.emit(error)
        except Exception as error:
            log.exception("the server failed")
            name = type(error).__name__
            hint = "Turn it on again; the log has the details."
            self._events.failed.emit(EngineError(f"The server failed: {name}.", hint))
