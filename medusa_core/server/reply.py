"""Run the requests for answers, and reply in an API's form: one object, or a stream of events."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import AnswerPart, ChatRequest
from medusa_core.server.context import ServerContext
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    server_event,
    while_connected,
)

_Parts = AsyncGenerator[tuple[int, AnswerPart], None]  # with the index of their answer
_T = TypeVar("_T")


class Reply(ABC):
    """The answers to one request, in the form of an API."""

    async def begin(self) -> Iterable[Mapping[str, Any]]:
        """Return the events before the first part.

        Raises:
            ApiError: The request can't be answered.
        """
        return ()

    @abstractmethod
    def events(self, index: int, part: AnswerPart) -> Iterable[Mapping[str, Any]]:
        """Add a part of the answer with this index, and return its events."""

    def end(self) -> Iterable[str]:
        """Return the encoded events after the last part."""
        return ()

    @abstractmethod
    def whole(self) -> Any:
        """Return all answers as one object, after the last part."""

    @abstractmethod
    def failure(self, error: ApiError) -> Mapping[str, Any]:
        """Return the last event of a stream that fails."""

    def encode(self, event: Mapping[str, Any]) -> str:
        """Return an event as text of the stream."""
        return server_event(event)


async def respond(
    http: Request,
    context: ServerContext,
    requests: Sequence[ChatRequest],
    reply: Reply,
    *,
    streams: bool,
) -> Response:
    """Answer requests.

    Args:
        context: The server's shared objects.
        requests: A request for each answer.
        reply: Puts the answers into the API's form.
        streams: Whether to reply with events.

    Raises:
        ApiError: An answer fails; in a stream only before its first part.
        ClientGone: The client disconnected.
    """
    parts = merge([context.answer(http, request) for request in requests])
    if not streams:
        return JsonReply(await while_connected(http, _whole(reply, parts)))
    # An error before the first part still has an HTTP status of its own.
    first, rest = await first_of(http, parts)
    return EventStream(_stream(reply, first, rest), context.limits)


async def _whole(reply: Reply, parts: _Parts) -> Any:
    """Run the answers to their end and return one object."""
    async with aclosing(parts) as arriving:
        async for index, part in arriving:
            for _ in reply.events(index, part):
                pass  # one object needs no events
    return reply.whole()


async def _stream(
    reply: Reply, first: tuple[int, AnswerPart], rest: _Parts
) -> AsyncGenerator[str, None]:
    """Yield the encoded events of the answers."""
    try:
        async with aclosing(rest) as parts:
            for event in await reply.begin():
                yield reply.encode(event)
            for event in reply.events(*first):
                yield reply.encode(event)
            async for item in parts:
                for event in reply.events(*item):
                    yield reply.encode(event)
    except ApiError as error:
        yield reply.encode(reply.failure(error))
        return
    for text in reply.end():
        yield text


async def merge(
    generators: Sequence[AsyncGenerator[_T, None]],
) -> AsyncGenerator[tuple[int, _T], None]:
    """Run generators at the same time, until all end or one fails.

    Args:
        generators: Closed when the merged generator ends or is closed.

    Yields:
        Index of a generator, and its next item.

    Raises:
        Exception: The first exception of a generator.
    """
    if len(generators) == 1:
        async with aclosing(generators[0]) as only:
            async for item in only:
                yield 0, item
        return
    arrived: asyncio.Queue[tuple[int, _T] | Exception | None] = asyncio.Queue()

    async def run(index: int, generator: AsyncGenerator[_T, None]) -> None:
        """Queue the items of a generator, then its end or error."""
        try:
            async with aclosing(generator) as items:
                async for item in items:
                    arrived.put_nowait((index, item))
        except Exception as error:  # noqa: BLE001 - raised again by the consumer
            arrived.put_nowait(error)
        else:
            arrived.put_nowait(None)

    tasks = [asyncio.create_task(run(*each)) for each in enumerate(generators)]
    try:
        num_left = len(tasks)
        while num_left:
            received = await arrived.get()
            if isinstance(received, Exception):
                raise received
            if received is None:
                num_left -= 1
            else:
                yield received
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
