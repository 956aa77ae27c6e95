"""Bodies that come and replies that go, within bounds of time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.limits import Limits
from medusa_core.server.records import Record, validate
from medusa_core.server.request_json import parse_json

_SMALL_BYTES = 64 << 10
_LENGTH_DIGITS = 13  # more are endless all the same
_T = TypeVar("_T")
_Record = TypeVar("_Record", bound=Record)


class ClientGone(Exception):  # noqa: N818 - nothing went wrong
    """Nobody waits for the reply any more."""


class JsonReply(Response):
    """A JSON object."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()


def json_text(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


async def read_body(http: Request, limits: Limits) -> bytes:
    """The body of a request.

    Raises:
        ApiError: It is too large, or doesn't come.
        ClientGone: The client went away.
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
    """A request's body on its way, of which somebody may read only a part."""

    def __init__(self, headers: Headers, receive: Receive) -> None:
        """Watch who reads it.

        Args:
            headers: Of the request.
            receive: Brings it.
        """
        length = headers.get("content-length", "0")
        is_number = length.isascii() and length.isdigit()
        self._length = int(length[:_LENGTH_DIGITS]) if is_number else 0
        self._is_read = not self._length and "transfer-encoding" not in headers
        self._is_awaited = "expect" in headers
        self._receive = receive

    async def receive(self) -> Message:
        """The next part of it, or that the client has gone."""
        message = await self._receive()
        self._is_read = not message.get("more_body", False)
        return message

    async def drop(self, limits: Limits) -> None:
        """Read and forget what nobody has read, up to a bound.

        Most clients send all of a body before they read a reply. Were the connection closed
        before, they would be told that it broke, and not why. Who asks before they send need none.
        """
        left = limits.dropped_bytes
        if self._is_awaited or self._length > left:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.drop_s):
                while left > 0 and not self._is_read:
                    left -= len((await self.receive()).get("body", b""))


def too_large(limits: Limits) -> ApiError:
    """The error of a body that is too large."""
    return ApiError(413, f"The body is larger than {limits.body_bytes:,} bytes.")


async def read_record(http: Request, limits: Limits, kind: type[_Record]) -> _Record:
    """Read and validate the body of a request.

    Args:
        http: The request.
        limits: What it may cost.
        kind: Record that describes the body.

    Raises:
        ApiError: The body is no JSON object, or a field is invalid.
        ClientGone: The client went away.
    """
    body = await read_body(http, limits)

    def parse() -> _Record:
        value = parse_json(body, limits.json_parts)
        if not isinstance(value, dict):
            raise bad_request("The body must be a JSON object.")
        return validate(kind, value)

    # A large body is parsed in a thread, so that other requests are served meanwhile.
    return parse() if len(body) <= _SMALL_BYTES else await asyncio.to_thread(parse)


async def while_connected(http: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Do work for a client, whose body is read; ends with the connection.

    Raises:
        ClientGone: The client went away first.
    """
    gone = asyncio.ensure_future(_gone(http))
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        await _end(gone, task)


async def _gone(http: Request) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventStream(Response):
    """Server-sent events, from a generator of their text.

    A reader that leaves, or that doesn't read for too long, ends the generator.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[str, None], limits: Limits) -> None:
        """Stream events.

        Args:
            events: Each with its closing empty line; none may raise.
            limits: How long a reader may let us wait.
        """
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})
        self._events = events
        self._send_s = limits.send_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(Request(scope, receive), self._stream(send))

    async def _stream(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._events) as events:
            async for event in events:
                if head:  # not before the generator runs: only then can it be closed
                    await self._bounded(send(head))
                    head = {}
                body = {"type": "http.response.body", "body": event.encode(), "more_body": True}
                await self._bounded(send(body))
        await self._bounded(send({"type": "http.response.body", "body": b"", "more_body": False}))

    async def _bounded(self, sending: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self._send_s):
                await sending
        except TimeoutError:
            raise ClientGone from None


def server_event(value: Mapping[str, Any], name: str = "") -> str:
    """One event of a stream.

    Args:
        value: Its JSON object.
        name: Its name; empty for none.
    """
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json_text(value)}\n\n"


async def first_of(
    http: Request, parts: AsyncGenerator[_T, None]
) -> tuple[_T, AsyncGenerator[_T, None]]:
    """The first part of an answer, before its reply begins: until then errors have a status.

    Returns:
        It, and the generator of the rest, which has to be closed.

    Raises:
        ApiError: There is no answer.
        ClientGone: The client went away.
    """

    async def first() -> _T:
        return await anext(parts)

    try:
        return await while_connected(http, first()), parts
    except BaseException:
        await parts.aclose()
        raise
