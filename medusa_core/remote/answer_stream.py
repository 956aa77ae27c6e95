"""Stream a chat completion of an endpoint as events of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from medusa_core.i18n import tr
from medusa_core.messages import Generate, GenerationDone, StepDone, StopReason
from medusa_core.remote.chat_body import chat_body
from medusa_core.remote.chunk import AnswerChunk, read_chunk
from medusa_core.remote.connection import EndpointConnection, EndpointResponse
from medusa_core.remote.refusals import broken_off, unreadable_answer
from medusa_core.remote.remote_answer import RemoteAnswer

MOST_LINE_BYTES = 1 << 20
MOST_ANSWER_BYTES = 64 << 20
_DATA = b"data:"
_END = b"[DONE]"
_STREAMED, _WHOLE = "text/event-stream", "json"


async def answer_events(
    connection: EndpointConnection, request: Generate, model_id: str
) -> AsyncIterator[StepDone | GenerationDone]:
    """Request an answer and yield its events; cancellation completes the partial answer.

    Raises:
        EndpointError: The endpoint fails, or the answer is cut off.
        RequestError: The request uses a feature that endpoints don't have.
    """
    answer, body = RemoteAnswer(request), chat_body(request, model_id)
    try:
        async with (
            connection.stream("POST", "/chat/completions", body) as response,
            aclosing(_chunks(connection, response)) as chunks,
        ):
            async for chunk in chunks:
                if (step := answer.add(chunk)) is not None:
                    yield step
        if not answer.finish:
            raise broken_off(connection.place, tr("it ended without saying why"))
    except asyncio.CancelledError:
        yield answer.done(StopReason.CANCELLED)
        return
    yield answer.done()


async def _chunks(
    connection: EndpointConnection, response: EndpointResponse
) -> AsyncGenerator[AnswerChunk, None]:
    """Yield the chunks of a streamed answer, or a whole answer as one chunk."""
    place, key = connection.place, connection.key
    if _STREAMED in response.content_type:
        async for data in event_data(response.pieces, place):
            if data.strip() == _END:
                return
            yield read_chunk(data, place, key)
    elif _WHOLE in response.content_type:
        body = bytearray()
        async for piece in response.pieces:
            body += piece
            if len(body) > MOST_ANSWER_BYTES:
                raise unreadable_answer(place, tr("it has no end"))
        yield read_chunk(bytes(body), place, key)
    else:
        kind = response.content_type.partition(";")[0][:50] or "of no kind"
        raise unreadable_answer(place, tr("it is {0}", kind))


async def event_data(pieces: AsyncIterator[bytes], server: str) -> AsyncIterator[bytes]:
    """Yield the data of server-sent events.

    Args:
        pieces: Bytes of the stream, split anywhere.
        server: Name of the endpoint, for errors.

    Raises:
        EndpointAnswerError: A line or the stream is too long.
    """
    lines: list[bytes] = []
    async for line in _lines(pieces, server):
        if line.startswith(_DATA):
            lines.append(line[len(_DATA) :].removeprefix(b" "))
            if sum(map(len, lines)) > MOST_LINE_BYTES:
                raise unreadable_answer(server, tr("an event is too long"))
        elif not line and lines:
            yield b"\n".join(lines)
            lines.clear()
    if lines:  # the last event may lack its empty line
        yield b"\n".join(lines)


async def _lines(pieces: AsyncIterator[bytes], server: str) -> AsyncIterator[bytes]:
    """Yield the lines of a body of limited size."""
    rest, num_bytes = b"", 0
    async for piece in pieces:
        num_bytes += len(piece)
        if num_bytes > MOST_ANSWER_BYTES:
            raise unreadable_answer(server, tr("it has no end"))
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > MOST_LINE_BYTES:
            raise unreadable_answer(server, tr("a line has no end"))
    if rest:
        yield rest.removesuffix(b"\r")
