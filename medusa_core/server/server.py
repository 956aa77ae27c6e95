"""The server: a socket, an HTTP application and an engine."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from medusa_core.client import Client
from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answering import Answering
from medusa_core.server.application import HttpApplication
from medusa_core.server.context import ServerContext
from medusa_core.server.guard import Guard, is_loopback, known_hosts
from medusa_core.server.limits import Limits
from medusa_core.server.metrics import Metrics
from medusa_core.server.request_log import RequestListener
from medusa_core.server.served_embedding import ServedEmbedding
from medusa_core.server.served_models import ModelSource, ServedModels
from medusa_core.server.server_options import ServerOptions
from medusa_core.server.session_pool import SessionPool

log = logging.getLogger(__name__)

_SPARE_SESSIONS = 16  # idle sessions
_CLOSING_S = 1
_UNSENT_BYTES = 64 << 10


class Server:
    """Serves one engine.

    `serve` runs in any thread that has an event loop; `stop` may be called from another thread.
    """

    def __init__(
        self,
        options: ServerOptions,
        make_client: Callable[[], Client],
        source: ModelSource,
        on_request: RequestListener,
    ) -> None:
        """Prepare a server.

        Args:
            options: Address and access.
            make_client: Makes the engine's client, in the server's event loop.
            source: Models that the server can load; see `SleepingModel`.
            on_request: Called in the server's thread after every request.

        Raises:
            RequestError: Other computers could use the server without a key.
        """
        if not options.api_key and not is_loopback(options.host):
            raise RequestError(
                tr("At {0} other computers reach the server, and it has no key.", options.host),
                "Give it one with --api-key.",
            )
        self._options, self._make_client = options, make_client
        self._source, self._on_request = source, on_request
        self._http: _Uvicorn | None = None
        self._is_stopped = False

    async def serve(self, on_ready: Callable[[str], None]) -> None:
        """Serve until `stop`.

        Args:
            on_ready: Called with the address once a model is loaded and the server listens.

        Raises:
            MedusaError: The address can't be used, or the first model can't be loaded.
        """
        options = self._options
        with _bound(options.host, options.port) as listening:
            async with self._make_client() as client:
                models = ServedModels(client, self._source, options.is_strict)
                limits = options.limits
                queue = AnswerQueue(models, limits.most_running, limits.most_waiting)
                try:
                    await self._load_first(models)
                    embedding = ServedEmbedding(client, models, options)
                    context = _context(client, models, queue, embedding, limits)
                    await self._listen(context, listening, on_ready)
                finally:
                    await queue.close()
                    models.close()

    def stop(self) -> None:
        """End `serve` and open answers; safe in any thread, and to call twice."""
        self._is_stopped = True
        if self._http is not None:
            self._http.should_exit = True

    async def _load_first(self, models: ServedModels) -> None:
        """Load the first model if none is loaded."""
        found = await models.all()
        if models.loaded is None and found:
            await models.load(found[0])

    async def _listen(
        self, context: ServerContext, listening: socket.socket, on_ready: Callable[[str], None]
    ) -> None:
        """Serve the application on a socket."""
        options, limits = self._options, self._options.limits
        port = listening.getsockname()[1]
        hosts = known_hosts(options.host, await asyncio.to_thread(_own_names))
        guard = Guard(hosts, port, options.origins, options.api_key)
        application = HttpApplication(context, guard, self._on_request)
        self._http = _Uvicorn(_configuration(application, limits))
        self._http.should_exit = self._is_stopped
        shown = f"[{options.host}]" if ":" in options.host else options.host
        ready = partial(on_ready, f"http://{shown}:{port}")
        await self._http.serve_on(listening, ready)


class _Uvicorn(uvicorn.Server):
    """Installs no signal handlers, and calls back when it listens."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield

    async def serve_on(self, listening: socket.socket, ready: Callable[[], None]) -> None:
        """Serve a socket until `should_exit` is set."""
        self._ready = ready
        await self.serve([listening])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and call back."""
        await super().startup(sockets)
        self._ready()


def _context(
    client: Client,
    models: ServedModels,
    queue: AnswerQueue,
    embedding: ServedEmbedding,
    limits: Limits,
) -> ServerContext:
    """Return the objects that all routes share."""
    sessions = SessionPool(limits.most_running + _SPARE_SESSIONS)
    answering = Answering(client, models, queue, sessions, limits)
    return ServerContext(client, models, queue, answering, embedding, limits, Metrics())


def _configuration(application: HttpApplication, limits: Limits) -> uvicorn.Config:
    """Configure uvicorn: no access log, bounded connections."""
    return uvicorn.Config(
        application,
        loop="asyncio",
        http=partial(_TimedConnection, head_s=limits.head_s),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.most_connections,
        timeout_keep_alive=limits.idle_s,
        timeout_graceful_shutdown=_CLOSING_S,
        h11_max_incomplete_event_size=limits.head_bytes,
    )


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Bind a socket to an address, and close it at exit.

    Raises:
        RequestError: The address can't be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns off Nagle's algorithm, which costs 40 ms per reply.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: the kernel would buffer megabytes for a client that doesn't read.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT_BYTES)
        try:
            listening.bind((host, port))
        except (OSError, OverflowError) as error:
            raise RequestError(
                tr("The server can't listen at {0}, port {1}: {2}.", host, port, error),
                "Choose another port; another server may run there already.",
            ) from error
        yield listening
    finally:
        listening.close()


def _own_names() -> tuple[str, ...]:
    """Return names and addresses of this computer; slow."""
    import psutil

    found = {socket.gethostname(), socket.getfqdn(), f"{socket.gethostname()}.local"}
    for addresses in psutil.net_if_addrs().values():
        found |= {
            address.address.partition("%")[0]
            for address in addresses
            if address.family in (socket.AF_INET, socket.AF_INET6)
        }
    return tuple(found)


class _TimedConnection(H11Protocol):
    """A connection that closes if a request's head doesn't arrive in time.

    uvicorn has a timeout between requests alone, so half-open connections would stay for ever.
    """

    def __init__(self, *args: Any, head_s: float, **more: Any) -> None:
        """Serve a connection.

        Args:
            args: Arguments of uvicorn's protocol.
            head_s: Timeout for a request's head in seconds.
            more: Arguments of uvicorn's protocol.
        """
        super().__init__(*args, **more)
        self._head_s = head_s
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer of the first request's head."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._restart_timer()

    def data_received(self, data: bytes) -> None:
        """Restart the timer if a request was completed or begun."""
        super().data_received(data)
        self._restart_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        """Run the timer between requests, and stop it during one."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_s, self._close_late)

    def _stop_timer(self) -> None:
        """Cancel the timer."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_late(self) -> None:
        """Close the connection, because the head didn't arrive in time."""
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()
