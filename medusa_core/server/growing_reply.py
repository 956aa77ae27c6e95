"""A reply that grows with its answer: the same blocks as events of a stream, or as one object."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from medusa_core.server.chat import AnswerEnd, AnswerPart


class GrowingReply(Protocol):
    """What an API makes of an answer."""

    def events(self, part: AnswerPart) -> Iterator[object]:
        """Take a part; yields the events that it becomes."""

    def whole(self, end: AnswerEnd) -> Mapping[str, Any]:
        """All parts in one object, once the last one was taken."""


async def whole_reply(
    reply: GrowingReply, parts: AsyncGenerator[AnswerPart, None]
) -> Mapping[str, Any]:
    """A reply in one object.

    Args:
        reply: Takes the parts.
        parts: Of the answer; they are closed.

    Raises:
        ApiError: It can't be answered.
    """
    end: AnswerEnd | None = None
    async with aclosing(parts) as arriving:
        async for part in arriving:
            for _ in reply.events(part):
                pass  # one object needs no events
            end = part if isinstance(part, AnswerEnd) else None
    assert end is not None  # the parts of an answer close with it
    return reply.whole(end)
