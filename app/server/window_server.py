"""The window's server, which shares its engine and wakes its sleeping model."""

from __future__ import annotations

from pathlib import Path

from app.server.server_switch import ServerEvents
from medusa_core.client import Client
from medusa_core.server.installed_models import served_model
from medusa_core.server.server import Server
from medusa_core.server.server_options import ServerOptions
from medusa_core.server.server_thread import ServerThread
from medusa_core.server.shared_engine import SharedEngine, SleepingModel


class WindowServer:
    """Server of the window's model at a local port."""

    def __init__(
        self, shared: SharedEngine, port: int, events: ServerEvents, embedding_model: str = ""
    ) -> None:
        """Create a server that isn't started.

        Args:
            shared: The engine.
            port: Its port.
            events: Receives its events.
            embedding_model: Folder or file of the embedding model; empty for none.
        """
        self._events = events
        embedding = served_model(Path(embedding_model)) if embedding_model else None
        self._server = Server(
            ServerOptions(port=port, embedding_model=embedding),
            lambda: Client(shared.join),
            SleepingModel(shared, events.model_wanted.emit),
            events.served.emit,
        )
        self._thread: ServerThread | None = None

    def start(self) -> None:
        """Start; returns at once."""
        events = self._events
        self._thread = ServerThread(self._server, events.ready.emit, events.failed.emit)

    def stop(self) -> None:
        """Stop the server; safe to call twice."""
        if self._thread is not None:
            self._thread.stop()
