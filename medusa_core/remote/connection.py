"""Requests to one address: bounded in time and size, and never led elsewhere."""

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
from medusa_core.remote.address import is_loopback_url
from medusa_core.remote.refusals import (
    broken_off,
    no_connection,
    refusal_of,
    unreadable_answer,
    untrusted,
)

_OK, _NO_SUCCESS = 200, 300
_MOST_REFUSAL_BYTES = 64 << 10
_MOST_JSON_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class EndpointPatience:
    """When a silent server is given up.

    Attributes:
        connect_s: Until a connection is made.
        silence_s: Without a byte; a long prompt takes a small machine minutes to read.
        list_s: For a whole list of models.
    """

    connect_s: float = 10.0
    silence_s: float = 600.0
    list_s: float = 30.0


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """How an answer begins, and the rest of it.

    Attributes:
        content_type: Its kind, such as `text/event-stream`.
        pieces: Its bytes, as they come. They raise `EndpointError` where the connection fails.
    """

    content_type: str
    pieces: AsyncIterator[bytes]


@dataclass(slots=True)
class EndpointConnection:
    """The way to one address; used by the coroutines of one event loop.

    Redirections aren't followed: the key and what is said are for this address alone. A proxy and
    certificates of the environment count, but a server on this computer is asked directly.

    Attributes:
        url: The address, up to `/v1`.
        place: What people call it.
        key: What proves who asks; empty for nobody.
        patience: When it is given up.
    """

    url: str
    place: str
    key: str = field(default="", repr=False)
    patience: EndpointPatience = field(default_factory=EndpointPatience)
    _client: httpx2.AsyncClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        patience = self.patience
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(patience.silence_s, connect=patience.connect_s),
            follow_redirects=False,
            trust_env=not is_loopback_url(self.url),
        )

    async def close(self) -> None:
        """End all connections."""
        await self._client.aclose()

    async def get_json(self, path: str) -> Any:
        """A small JSON value.

        Args:
            path: Behind the address, such as `/models`.

        Raises:
            EndpointError: It can't be had.
        """
        try:
            async with asyncio.timeout(self.patience.list_s), self.stream("GET", path) as response:
                body = await _whole_body(response.pieces, _MOST_JSON_BYTES)
        except TimeoutError as error:
            raise no_connection(self.place, "it takes too long") from error
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            what = "it is a page" if "html" in response.content_type else "it is no JSON"
            raise unreadable_answer(self.place, what) from error

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[EndpointResponse]:
        """Ask for something, and take the answer as it comes.

        Args:
            method: HTTP's word for it.
            path: Behind the address.
            body: Sent as JSON; None for nothing.

        Raises:
            EndpointError: It can't be had.
        """
        url = f"{self.url}{path}"
        # Compressed answers could grow without bound, and are held back until a block is full.
        headers = {"Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            request = self._client.build_request(method, url, headers=headers, json=body)
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise self._unanswered(error) from error
        try:
            if not _OK <= response.status_code < _NO_SUCCESS:
                raise await self._refusal(url, response)
            if response.headers.get("content-encoding", "identity") != "identity":
                raise unreadable_answer(
                    self.place, "it is compressed, though that wasn't asked for"
                )
            content_type = response.headers.get("content-type", "")
            yield EndpointResponse(content_type, self._pieces(response))
        finally:
            await response.aclose()

    async def _pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        try:
            async for piece in response.aiter_raw():
                yield piece
        except (httpx2.HTTPError, OSError) as error:
            raise broken_off(self.place, _reason(error)) from error

    async def _refusal(self, url: str, response: httpx2.Response) -> EndpointError:
        body = bytearray()
        async for piece in self._pieces(response):
            body += piece
            if len(body) >= _MOST_REFUSAL_BYTES:
                break
        where = {"url": url, "place": self.place, "key": self.key}
        return refusal_of(response.status_code, response.headers, bytes(body), **where)

    def _unanswered(self, error: Exception) -> EndpointError:
        """Why there is no answer, in words that hold nothing of the request."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return untrusted(self.place, cause.verify_message)
            if isinstance(cause, ssl.SSLError):
                return untrusted(self.place, "the encryption fails")
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, httpx2.RemoteProtocolError):
            return unreadable_answer(self.place, "it isn't HTTP")
        return no_connection(self.place, _reason(error))


def _reason(error: Exception) -> str:
    reason = f"the connection failed ({type(error).__name__})"
    if isinstance(error, httpx2.TimeoutException):
        reason = "it is silent"
    elif isinstance(error, httpx2.ConnectError):
        reason = "nothing answers there"
    elif isinstance(error, httpx2.RemoteProtocolError):
        reason = "the connection was cut"
    return reason


async def _whole_body(pieces: AsyncIterator[bytes], most_bytes: int) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most_bytes:
            break  # what is cut is no JSON
    return bytes(body)
