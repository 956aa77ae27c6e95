"""Admit answers in order: a limited number at a time, all by one model."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from medusa_core.errors import MedusaError
from medusa_core.server.api_error import ApiError, api_error_of
from medusa_core.server.served_models import ServedModel, ServedModels

log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    """A queued answer."""

    model: ServedModel
    granted: asyncio.Future[None]


class AnswerQueue:
    """A first-in, first-out queue of answers.

    An answer by another model waits until no answer runs, and later ones wait for it, so that
    neither model starves the other.

    Attributes:
        num_running: Number of running answers.
    """

    def __init__(self, models: ServedModels, most_running: int, most_waiting: int) -> None:
        """Make an empty queue.

        Args:
            models: Loads the models.
            most_running: Most answers at the same time.
            most_waiting: Most queued answers; further ones are refused.
        """
        self._models = models
        self._most_running, self._most_waiting = most_running, most_waiting
        self.num_running = 0
        self._waiting: deque[_Waiting] = deque()
        self._loading: asyncio.Task[None] | None = None

    @property
    def num_waiting(self) -> int:
        """Number of queued answers."""
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, model: ServedModel) -> AsyncIterator[None]:
        """Wait until an answer by this model may begin; it runs within the context.

        Raises:
            ApiError: The queue is full, or the model can't be loaded.
        """
        await self._wait(model)
        try:
            yield
        finally:
            self.num_running -= 1
            self._advance()

    async def close(self) -> None:
        """Cancel loading."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    async def _wait(self, model: ServedModel) -> None:
        """Queue an answer until it is admitted; refuse it if the queue is full."""
        waiting = _Waiting(model, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._advance()
        if len(self._waiting) > self._most_waiting:
            self._waiting.pop()
            waiting.granted.cancel()
            raise ApiError(
                429,
                f"{self._most_waiting} requests wait already. Try again later.",
                code="queue_full",
                retry_after_s=2,
            )
        try:
            await waiting.granted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif waiting.granted.done() and not waiting.granted.cancelled():
                self.num_running -= waiting.granted.exception() is None
            self._advance()
            raise

    def _advance(self) -> None:
        """Admit as many answers as the limit allows."""
        while self._waiting and self._loading is None:
            first = self._waiting[0]
            if first.model != self._models.loaded:
                if not self.num_running:
                    self._loading = asyncio.create_task(self._load(first))
                return
            if self.num_running >= self._most_running:
                return
            self._waiting.popleft()
            if not first.granted.done():
                self.num_running += 1
                first.granted.set_result(None)

    async def _load(self, first: _Waiting) -> None:
        """Load the model of the first answer, even if that one leaves meanwhile."""
        error: ApiError | None = None
        try:
            await self._models.load(first.model)
        except ApiError as refused:
            error = refused
        except MedusaError as failed:
            log.info("a requested model can't be loaded", exc_info=True)
            error = api_error_of(failed)
            error.status = 503 if error.status == 400 else error.status
        finally:
            self._loading = None
        if error is None and first.model != self._models.loaded:
            error = ApiError(503, f"{first.model.model_id} was replaced by another model.")
        if error is not None and first in self._waiting:
            self._waiting.remove(first)
            if not first.granted.done():
                first.granted.set_exception(error)
        self._advance()
