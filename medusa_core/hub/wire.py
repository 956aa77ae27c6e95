"""HTTP requests that can be cancelled at any time, also while the server is silent.

Every request runs in a thread of its own that touches no file. Its reader takes bytes from a short
queue and polls for cancellation ten times a second.
"""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from medusa_core.hub.settings import HubSettings
from medusa_core.hub.speed import StallDetector
from medusa_core.hub.watch import Stopped
from medusa_core.i18n import tr

log = logging.getLogger(__name__)

_POLL_S = 0.1
_QUEUED_PIECES = 8  # of 64 KiB each
_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


class BrokenError(Exception):
    """The connection failed; the text says how."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers of a response.

    Attributes:
        status: HTTP status code.
        headers: Headers.
        first: Headers of the first response of a redirection; else the same.
    """

    status: int
    headers: Mapping[str, str]
    first: Mapping[str, str]


class Wire:
    """Connections to the Hub and their requests."""

    def __init__(self, settings: HubSettings) -> None:
        """Create a client with the proxy and certificates of the environment."""
        import httpx2

        self._timeouts = settings.timeouts
        self._token = settings.token
        self._client = httpx2.Client(
            timeout=settings.timeouts.stall_s,
            follow_redirects=True,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        )
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._num_running = 0
        self._is_closed = False

    def close(self) -> None:
        """Close all connections; running requests are woken, and the last one closes the client."""
        with self._lock:
            self._is_closed = True
            is_idle = not self._num_running
            woken = tuple(self._sockets)
        if is_idle:
            self._client.close()
            return
        for one in woken:
            with suppress(OSError):  # already closed
                # SSLSocket.shutdown would race with the thread that reads.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    @contextmanager
    def get(
        self, url: str, stop: threading.Event, headers: Mapping[str, str] | None = None
    ) -> Iterator[Exchange]:
        """Send a GET request.

        Args:
            stop: Ends every wait for the response.
            headers: Headers besides the authorization.

        Raises:
            BrokenError: The server can't be reached, is silent or too slow.
            Stopped: `stop` was set.
        """
        sent_headers = dict(headers or {})
        if self._token:
            sent_headers["Authorization"] = f"Bearer {self._token}"
        exchange = Exchange(StallDetector(self._timeouts), stop)
        with self._lock:
            self._num_running += 1
        threading.Thread(
            target=self._run, args=(url, sent_headers, exchange), name="hub-request", daemon=True
        ).start()
        try:
            yield exchange
        finally:
            exchange.leave()

    def _run(self, url: str, headers: Mapping[str, str], exchange: Exchange) -> None:
        """Run a request in its thread; errors are passed to the reader."""
        try:
            self._answer(url, headers, exchange)
        except Exception as error:  # noqa: BLE001 - passed to the waiting thread
            exchange.offer(BrokenError(_reason(error)))
        with self._lock:
            self._num_running -= 1
            is_last = self._is_closed and not self._num_running
        if is_last:
            self._client.close()

    def _answer(self, url: str, headers: Mapping[str, str], exchange: Exchange) -> None:
        """Send the request and queue head and body."""
        extensions = {"trace": self._note}
        with self._client.stream("GET", url, headers=headers, extensions=extensions) as response:
            first = response.history[0] if response.history else response
            is_wanted = exchange.offer(Head(response.status_code, response.headers, first.headers))
            pieces = response.iter_raw()
            while is_wanted and (piece := next(pieces, None)) is not None:
                is_wanted = exchange.offer(piece)
            exchange.offer(None)

    def _note(self, event: str, details: Mapping[str, Any]) -> None:
        """Remember sockets as they are opened, so that `close` can wake their readers."""
        if event.endswith(_CONNECTED):
            found = details["return_value"].get_extra_info("socket")
            with self._lock:
                # A TLS connection takes over the plain socket, whose descriptor becomes -1.
                self._sockets = [one for one in self._sockets if one.fileno() >= 0]
                self._sockets.append(found)


class Exchange:
    """A response as the waiting thread reads it."""

    def __init__(self, waiting: StallDetector, stop: threading.Event) -> None:
        self._waiting = waiting
        self._stop = stop
        self._left = threading.Event()
        self._arrived: queue.Queue[Head | bytes | BrokenError | None] = queue.Queue(_QUEUED_PIECES)

    def head(self) -> Head:
        """Return status and headers.

        Raises:
            BrokenError: There was no response.
            Stopped: `stop` was set.
        """
        head = self._next()
        assert isinstance(head, Head)
        return head

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            BrokenError: It breaks off, or comes too slowly.
            Stopped: `stop` was set.
        """
        while (piece := self._next()) is not None:
            assert isinstance(piece, bytes)
            yield piece

    def offer(self, item: Head | bytes | BrokenError | None) -> bool:
        """Queue something for the reader; False if the reader has left."""
        while not self._left.is_set():
            with suppress(queue.Full):
                self._arrived.put(item, timeout=_POLL_S)
                return True
        return False

    def leave(self) -> None:
        """Stop reading."""
        self._left.set()

    def _next(self) -> Head | bytes | None:
        """Wait for the next item, while checking for cancellation and stalls."""
        while True:
            if self._stop.is_set():
                raise Stopped
            began_s = time.monotonic()
            item: Head | bytes | BrokenError | None = b""
            with suppress(queue.Empty):
                item = self._arrived.get(timeout=_POLL_S)
            if isinstance(item, BrokenError):
                raise item
            nbytes = len(item) if isinstance(item, bytes) else 1
            if reason := self._waiting.count(time.monotonic() - began_s, nbytes):
                raise BrokenError(reason)
            if item != b"":
                return item


def with_deadline(pieces: Iterator[bytes], seconds: float) -> Iterator[bytes]:
    """Yield pieces of a response until a total time is over.

    Raises:
        BrokenError: There is none left.
    """
    end = time.monotonic() + seconds
    for piece in pieces:
        if time.monotonic() > end:
            raise BrokenError(tr("the answer took longer than {0:.0f} s", seconds))
        yield piece


def _reason(error: Exception) -> str:
    """Describe a connection error for users."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException):
        return tr("the server is silent")
    if any(words in str(error) for words in ("Name or service", "getaddrinfo", "resolution")):
        return tr("the server's name can't be resolved")
    return tr("the connection failed ({0})", type(error).__name__)
