"""Several answers to one request, as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

from medusa_core.server.chat import AnswerPart

ChoiceParts = AsyncGenerator[tuple[int, AnswerPart], None]  # parts, and whose they are
_T = TypeVar("_T")


async def merged(
    generators: Sequence[AsyncGenerator[_T, None]],
) -> AsyncGenerator[tuple[int, _T], None]:
    """What generators yield, as it comes; leaving earlier, or one that fails, ends them all.

    Args:
        generators: They run at the same time.

    Yields:
        The place of a generator, and what it brought.

    Raises:
        Exception: The first one that a generator raises.
    """
    if len(generators) == 1:
        async with aclosing(generators[0]) as only:
            async for item in only:
                yield 0, item
        return
    arrived: asyncio.Queue[tuple[int, _T] | Exception | None] = asyncio.Queue()

    async def run(place: int, generator: AsyncGenerator[_T, None]) -> None:
        try:
            async with aclosing(generator) as items:
                async for item in items:
                    arrived.put_nowait((place, item))
        except Exception as error:  # noqa: BLE001 - raised again, where it is waited for
            arrived.put_nowait(error)
        else:
            arrived.put_nowait(None)

    tasks = [asyncio.create_task(run(*each)) for each in enumerate(generators)]
    try:
        num_left = len(tasks)
        while num_left:
            found = await arrived.get()
            if isinstance(found, Exception):
                raise found
            if found is None:
                num_left -= 1
            else:
                yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
