"""Run a server in a thread of the window's process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from medusa_core.errors import EngineError, MedusaError
from medusa_core.i18n import tr
from medusa_core.server.server import Server

log = logging.getLogger(__name__)


class ServerThread:
    """Runs a server in a thread with its own event loop."""

    def __init__(
        self,
        server: Server,
        on_ready: Callable[[str], None],
        on_failed: Callable[[MedusaError], None],
    ) -> None:
        """Start the thread.

        Args:
            server: A server that hasn't run yet.
            on_ready: Called in the thread with the address once the server listens.
            on_failed: Called in the thread if the server can't start or ends by itself.
        """
        self._server = server
        self._on_ready, self._on_failed = on_ready, on_failed
        self._thread = threading.Thread(target=self._run, name="medusa-server", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop the server and its open answers; safe to call twice."""
        self._server.stop()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            log.warning("the server did not end within %.0f s", timeout_s)

    def _run(self) -> None:
        """Run the server; failures are reported by a callback."""
        try:
            asyncio.run(self._server.serve(self._on_ready))
        except MedusaError as error:
            self._on_failed(error)
        except Exception as error:
            log.exception("the server ended")
            self._on_failed(
                EngineError(
                    tr("The server ended: {0}.", type(error).__name__),
                    "Start it again; see the log.",
                )
            )
