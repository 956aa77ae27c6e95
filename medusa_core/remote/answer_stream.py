"""One chat completion of another machine: its chunks as events of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from medusa_core.messages import Generate, GenerationDone, StepDone, StopReason
from medusa_core.remote.chat_body import chat_body
from medusa_core.remote.chunk import AnswerChunk, read_chunk
from medusa_core.remote.connection import EndpointConnection, EndpointResponse
from medusa_core.remote.refusals import broken_off, unreadable_answer
from medusa_core.remote.remote_answer import RemoteAnswer
from medusa_core.remote.server_events import MOST_ANSWER_BYTES, event_data

_END = b"[DONE]"
_STREAMED, _WHOLE = "text/event-stream", "json"


async def answer_events(
    connection: EndpointConnection, request: Generate, model_id: str
) -> AsyncIterator[StepDone | GenerationDone]:
    """The events of an answer; cancelled, what has come is the answer.

    Raises:
        EndpointError: It can't be had, or breaks off.
        RequestError: It asks for what can't be asked of another machine.
    """
    answer, body = RemoteAnswer(request), chat_body(request, model_id)
    try:
        async with (
            connection.stream("POST", "/chat/completions", body) as response,
            aclosing(_chunks(connection, response)) as chunks,
        ):
            async for chunk in chunks:
                if (step := answer.take(chunk)) is not None:
                    yield step
        if not answer.finish:
            raise broken_off(connection.place, "it ended without saying why")
    except asyncio.CancelledError:
        yield answer.done(StopReason.CANCELLED)
        return
    yield answer.done()


async def _chunks(
    connection: EndpointConnection, response: EndpointResponse
) -> AsyncGenerator[AnswerChunk, None]:
    """The chunks of a streamed answer; of one that comes whole, that."""
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
                raise unreadable_answer(place, "it has no end")
        yield read_chunk(bytes(body), place, key)
    else:
        kind = response.content_type.partition(";")[0][:50] or "of no kind"
        raise unreadable_answer(place, f"it is {kind}")
