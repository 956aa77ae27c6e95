"""HTTP requests to an endpoint, with limits of time and size and without redirects."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from medusa_core.errors import EndpointError
from medusa_core.i18n import tr
from medusa_core.remote.refusals import (
    broken_off,
    no_connection,
    refusal_of,
    unreadable_answer,
    untrusted,
)
from medusa_core.system.loopback import is_loopback_url

_OK, _NO_SUCCESS = 200, 300
_MOST_REFUSAL_BYTES = 64 << 10
_MOST_JSON_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class EndpointTimeouts:
    """Timeouts of an endpoint in seconds.

    Attributes:
        connect_s: To connect.
        read_s: Between two bytes; the prefill of a long prompt takes a slow machine minutes.
        list_s: For a complete list of models.
    """

    connect_s: float = 10.0
    read_s: float = 600.0
    list_s: float = 30.0


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """A response whose body is streamed.

    Attributes:
        content_type: Content type, such as `text/event-stream`.
        pieces: Chunks of the body; raises `EndpointError` if the connection fails.
    """

    content_type: str
    pieces: AsyncIterator[bytes]


@dataclass(slots=True)
class EndpointConnection:
    """HTTP client of an endpoint, for one event loop.

    Redirects aren't followed, since key and conversation are for this address alone. Proxy and
    certificates of the environment are used, except for a server on this computer.

    Attributes:
        url: URL of the endpoint, up to `/v1`.
        place: Name of the endpoint, for errors.
        key: API key; empty for none.
        timeouts: Timeouts of the endpoint.
    """

    url: str
    place: str
    key: str = field(default="", repr=False)
    timeouts: EndpointTimeouts = field(default_factory=EndpointTimeouts)
    _client: httpx2.AsyncClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        timeouts = self.timeouts
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeouts.read_s, connect=timeouts.connect_s),
            follow_redirects=False,
            trust_env=not is_loopback_url(self.url),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get_json(self, path: str) -> Any:
        """Request a JSON value of at most 4 MiB.

        Args:
            path: Path after the URL, such as `/models`.

        Raises:
            EndpointError: The request fails, or the body is no JSON.
        """
        try:
            async with asyncio.timeout(self.timeouts.list_s), self.stream("GET", path) as response:
                body = await _whole_body(response.pieces, _MOST_JSON_BYTES)
        except TimeoutError as error:
            raise no_connection(self.place, tr("it takes too long")) from error
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            what = tr("it is a page") if "html" in response.content_type else tr("it is no JSON")
            raise unreadable_answer(self.place, what) from error

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[EndpointResponse]:
        """Send a request, and stream the response.

        Args:
            method: HTTP method.
            path: Path after the URL.
            body: JSON body; None for none.

        Raises:
            EndpointError: The request fails.
        """
        url = f"{self.url}{path}"
        # A compressed stream arrives in blocks, and could expand without limit.
        headers = {"Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            request = self._client.build_request(method, url, headers=headers, json=body)
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise self._connection_error(error) from error
        try:
            if not _OK <= response.status_code < _NO_SUCCESS:
                raise await self._refusal(url, response)
            if response.headers.get("content-encoding", "identity") != "identity":
                raise unreadable_answer(
                    self.place, tr("it is compressed, though that wasn't asked for")
                )
            content_type = response.headers.get("content-type", "")
            yield EndpointResponse(content_type, self._pieces(response))
        finally:
            await response.aclose()

    async def _pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; connection errors are converted."""
        try:
            async for piece in response.aiter_raw():
                yield piece
        except (httpx2.HTTPError, OSError) as error:
            raise broken_off(self.place, _reason(error)) from error

    async def _refusal(self, url: str, response: httpx2.Response) -> EndpointError:
        """Read a bounded part of an error's body and convert it."""
        body = bytearray()
        async for piece in self._pieces(response):
            body += piece
            if len(body) >= _MOST_REFUSAL_BYTES:
                break
        return refusal_of(
            response.status_code,
            response.headers,
            bytes(body),
            url=url,
            server=self.place,
            key=self.key,
        )

    def _connection_error(self, error: Exception) -> EndpointError:
        """Convert a connection error, without quoting the request."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return untrusted(self.place, cause.verify_message)
            if isinstance(cause, ssl.SSLError):
                return untrusted(self.place, tr("the encryption fails"))
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, httpx2.RemoteProtocolError):
            return unreadable_answer(self.place, tr("it isn't HTTP"))
        return no_connection(self.place, _reason(error))


def _reason(error: Exception) -> str:
    """Describe a connection error for users."""
    reason = tr("the connection failed ({0})", type(error).__name__)
    if isinstance(error, httpx2.TimeoutException):
        reason = tr("it is silent")
    elif isinstance(error, httpx2.ConnectError):
        reason = tr("nothing answers there")
    elif isinstance(error, httpx2.RemoteProtocolError):
        reason = tr("the connection was cut")
    return reason


async def _whole_body(pieces: AsyncIterator[bytes], most_bytes: int) -> bytes:
    """Read a body up to a limit."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most_bytes:
            break  # the cut body fails to parse
    return bytes(body)
