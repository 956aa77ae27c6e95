"""Read request bodies and send replies, within time limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.limits import Limits
from medusa_core.server.records import Record, validate

_SMALL_BYTES = 64 << 10
_LENGTH_DIGITS = 13  # longer bodies are refused anyway
_T = TypeVar("_T")
_Record = TypeVar("_Record", bound=Record)


class ClientGone(Exception):  # noqa: N818 - nothing went wrong
    """The client closed the connection."""


class JsonReply(Response):
    """A JSON object."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode a value."""
        return json_text(content).encode()


def json_text(value: Any) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


async def read_body(http: Request, limits: Limits) -> bytes:
    """Read the body of a request.

    Raises:
        ApiError: The body is too large, or doesn't arrive in time.
        ClientGone: The client disconnected.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_s):
            while True:
                message = await http.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                body += message.get("body", b"")
                if len(body) > limits.body_bytes:
                    raise too_large(limits)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise ApiError(408, f"The body didn't arrive within {limits.body_s:g} s.") from None


class RequestBody:
    """The body of a request, which may be read in part."""

    def __init__(self, headers: Headers, receive: Receive) -> None:
        """Track what is read.

        Args:
            headers: Headers of the request.
            receive: ASGI's `receive`.
        """
        length = headers.get("content-length", "0")
        is_number = length.isascii() and length.isdigit()
        self._length = int(length[:_LENGTH_DIGITS]) if is_number else 0
        self._is_read = not self._length and "transfer-encoding" not in headers
        self._is_awaited = "expect" in headers
        self._receive = receive

    async def receive(self) -> Message:
        """Receive the next chunk, or the disconnect message."""
        message = await self._receive()
        self._is_read = not message.get("more_body", False)
        return message

    async def drop(self, limits: Limits) -> None:
        """Read and discard the rest, up to a limit.

        Most clients send all of a body before they read the reply. If the connection closed
        earlier, they would report a broken connection instead of the error. Clients that send
        `Expect` wait for the reply first.
        """
        left = limits.dropped_bytes
        if self._is_awaited or self._length > left:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.drop_s):
                while left > 0 and not self._is_read:
                    left -= len((await self.receive()).get("body", b""))


def too_large(limits: Limits) -> ApiError:
    """Return the error for a body that is too large."""
    return ApiError(413, f"The body is larger than {limits.body_bytes:,} bytes.")


async def read_record(http: Request, limits: Limits, kind: type[_Record]) -> _Record:
    """Read and validate the body of a request.

    Args:
        limits: Limits of size and time.
        kind: Record that describes the body.

    Raises:
        ApiError: The body is no JSON object, or a field is invalid.
        ClientGone: The client disconnected.
    """
    body = await read_body(http, limits)

    def parse() -> _Record:
        """Parse and validate the body; slow for large ones, so it runs in a thread."""
        value = parse_json(body, limits.json_parts)
        if not isinstance(value, dict):
            raise bad_request("The body must be a JSON object.")
        return validate(kind, value)

    # A large body is parsed in a thread, so that other requests are served meanwhile.
    return parse() if len(body) <= _SMALL_BYTES else await asyncio.to_thread(parse)


def parse_json(body: bytes, most_parts: int) -> Any:
    """Parse a JSON text; the parser refuses more than 200 levels and lone surrogates.

    Args:
        body: JSON text in UTF-8.
        most_parts: Most objects, lists, keys and strings: the interpreter does nothing else while
            it makes them.

    Raises:
        ApiError: The text is not valid JSON, too deep, or has too many parts.
    """
    if _num_parts(body, most_parts) > most_parts:
        raise bad_request(f"The JSON has too many parts; {most_parts:,} are the most.")
    try:
        value = from_json(body, allow_inf_nan=False)
        json.dumps(value, allow_nan=False)  # the parser takes 1e999 for infinity
    except ValueError as error:
        raise bad_request(f"The body is not valid JSON: {error}.") from None
    return value


def _num_parts(body: bytes, enough: int) -> int:
    """Count a lower bound of the objects, lists and strings in a JSON text."""
    most = body.count(b"[") + body.count(b"{") + body.count(b'"') // 2
    if most <= enough:
        return most
    # Without escapes every quote begins or ends a string: each second piece is in one.
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 2 * enough)
    rest = b"".join(pieces[::2])
    return len(pieces) // 2 + rest.count(b"[") + rest.count(b"{")


async def while_connected(http: Request, coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine until it ends or the client disconnects; the body must have been read.

    Raises:
        ClientGone: The client disconnected first.
    """
    gone = asyncio.ensure_future(_gone(http))
    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        await _end(gone, task)


async def _gone(http: Request) -> None:
    """Wait until the client disconnects."""
    while (await http.receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventStream(Response):
    """Server-sent events.

    The generator is closed when the client disconnects, or doesn't read for too long.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[str, None], limits: Limits) -> None:
        """Stream events.

        Args:
            events: Yields encoded events; must not raise.
            limits: Limits of the server, with the timeout for sending.
        """
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        self._events = events
        self._send_s = limits.send_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(Request(scope, receive), self._stream(send))

    async def _stream(self, send: Send) -> None:
        """Send head, events and end."""
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._events) as events:
            async for event in events:
                if head:  # sent after the first event: a generator that never ran isn't closed
                    await self._bounded(send(head))
                    head = {}
                body = {"type": "http.response.body", "body": event.encode(), "more_body": True}
                await self._bounded(send(body))
        await self._bounded(send({"type": "http.response.body", "body": b"", "more_body": False}))

    async def _bounded(self, sending: Awaitable[None]) -> None:
        """Send within the time limit; a client that reads too slowly counts as gone."""
        try:
            async with asyncio.timeout(self._send_s):
                await sending
        except TimeoutError:
            raise ClientGone from None


def server_event(value: Mapping[str, Any], name: str = "") -> str:
    """Return a server-sent event.

    Args:
        value: JSON object of the event.
        name: Name of the event; empty for none.
    """
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json_text(value)}\n\n"


async def first_of(
    http: Request, parts: AsyncGenerator[_T, None]
) -> tuple[_T, AsyncGenerator[_T, None]]:
    """Wait for the first part of an answer.

    Returns:
        The first part, and the generator of the rest, which has to be closed.

    Raises:
        ApiError: The answer fails before its first part.
        ClientGone: The client disconnected.
    """

    async def first() -> _T:
        """Return the first part as a coroutine."""
        return await anext(parts)

    try:
        return await while_connected(http, first()), parts
    except BaseException:
        await parts.aclose()
        raise
