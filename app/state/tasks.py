"""Background coroutines of one owner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from PySide6.QtCore import QObject


class Tasks:
    """Starts coroutines on the running loop and keeps them until they end.

    asyncio itself refers to its tasks weakly, and reports the exception of a task only when the
    garbage collector finds it. Here an exception goes to `sys.excepthook` when the task ends.

    Args:
        owner: Qt object; its deletion cancels the coroutines. None for no owner.
    """

    def __init__(self, owner: QObject | None = None) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        if owner is not None:
            owner.destroyed.connect(self.cancel)

    @property
    def is_running(self) -> bool:
        """Whether a coroutine hasn't ended yet."""
        return bool(self._tasks)

    def start(
        self, work: Coroutine[Any, Any, None], on_end: Callable[[], object] | None = None
    ) -> None:
        """Start a coroutine.

        Args:
            work: The coroutine.
            on_end: Called after it has returned, failed or been cancelled.
        """
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        if on_end is not None:
            task.add_done_callback(lambda _task: on_end())

    def cancel(self) -> None:
        """Cancel all coroutines; they end at their next `await`.

        With the loop they have ended already: Qt deletes windows after it.
        """
        for task in self._tasks:
            if not task.get_loop().is_closed():
                task.cancel()

    async def wait(self) -> None:
        """Wait until all coroutines have ended, including those started meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            sys.excepthook(type(error), error, error.__traceback__)
