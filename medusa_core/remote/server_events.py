"""Server-sent events of an answer, as they come, within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator

from medusa_core.remote.refusals import unreadable_answer

MOST_LINE_BYTES = 1 << 20
MOST_ANSWER_BYTES = 64 << 20
_DATA = b"data:"


async def event_data(pieces: AsyncIterator[bytes], place: str) -> AsyncIterator[bytes]:
    """The data of each event.

    Args:
        pieces: Bytes of the stream, cut anywhere.
        place: Who sends them, for messages.

    Raises:
        EndpointAnswerError: A line or the whole is too long.
    """
    lines: list[bytes] = []
    async for line in _lines(pieces, place):
        if line.startswith(_DATA):
            lines.append(line[len(_DATA) :].removeprefix(b" "))
            if sum(map(len, lines)) > MOST_LINE_BYTES:
                raise unreadable_answer(place, "an event is too long")
        elif not line and lines:
            yield b"\n".join(lines)
            lines.clear()
    if lines:  # the last one may lack its empty line
        yield b"\n".join(lines)


async def _lines(pieces: AsyncIterator[bytes], place: str) -> AsyncIterator[bytes]:
    rest, num_bytes = b"", 0
    async for piece in pieces:
        num_bytes += len(piece)
        if num_bytes > MOST_ANSWER_BYTES:
            raise unreadable_answer(place, "it has no end")
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > MOST_LINE_BYTES:
            raise unreadable_answer(place, "a line has no end")
    if rest:
        yield rest.removesuffix(b"\r")
