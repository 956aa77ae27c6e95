"""The worker: one thread owns the model, receives commands, and sends events.

This file imports no torch: the thread does, so that starting the engine doesn't block the caller.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from medusa_core.errors import EngineError
from medusa_core.i18n import tr
from medusa_core.messages import Cancel, Command, Event, Failed, Message, Progress
from medusa_core.system.installation import repair_command
from medusa_core.system.torch_libraries import imports_uncollected, load_torch_libraries

if TYPE_CHECKING:
    from medusa_core.engine.executor import Executor

log = logging.getLogger(__name__)


class Worker:
    """Runs an `Executor` in its own thread; see `medusa_core.api.Engine`."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        self._commands: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._cancelled: set[tuple[str, str]] = set()  # of queued Cancels
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="medusa-engine", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread still receives commands."""
        return self._thread.is_alive()

    def submit(self, command: Command) -> None:
        """Queue a command; returns at once."""
        if isinstance(command, Cancel):
            self._cancelled.add(command.ids)
        self._commands.put(command)

    def close(self, timeout_s: float = 10.0) -> None:
        """End the thread; running requests are cancelled within a step."""
        self._closing.set()
        self._commands.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                log.warning("the engine did not end within %.0f s", timeout_s)

    def _run(self) -> None:
        """The thread: handle commands as they come, and run steps between them."""
        executor: Executor | None = None
        while not self._closing.is_set():
            is_idle = executor is None or not executor.has_work
            command = self._next_command(waits=is_idle)
            if command is not None:
                # Answers of remote models are cancelled here, too; that alone needs no torch.
                if executor is None and not isinstance(command, Cancel):
                    executor = self._opened(command)
                if executor is not None:
                    executor.handle(command)
                if isinstance(command, Cancel):
                    self._cancelled.discard(command.ids)
            elif executor is not None and executor.has_work:
                executor.work()
        if executor is not None:
            executor.close()

    def _notify(self, event: Event) -> None:
        """Deliver an event; if its receiver fails, the event is lost and the thread continues."""
        try:
            self._on_event(event)
        except BaseException:
            log.exception("a receiver of engine events failed")

    def _is_cancelled(self, command: Message) -> bool:
        """Whether a Cancel of a command is queued, or the worker is closing."""
        return self._closing.is_set() or command.ids in self._cancelled

    def _next_command(self, waits: bool) -> Command | None:
        """The next queued command; None if there is none, or to wake up for closing."""
        try:
            return self._commands.get(block=waits)
        except queue.Empty:
            return None

    def _opened(self, first: Command) -> Executor | None:
        """Return the executor; if torch can't be imported, fail the command and return None."""
        try:
            return self._open_executor(first)
        except BaseException as error:
            log.exception("the engine can't start")
            self._notify(
                Failed(
                    *first.ids,
                    EngineError.__name__,
                    tr("The engine can't start: {0}.", type(error).__name__),
                    tr(
                        "Install Medusa Chat again ({0}); the log has the details.",
                        repair_command(),
                    ),
                )
            )
            return None

    def _open_executor(self, first: Command) -> Executor:
        """Import torch and make the executor."""
        self._notify(Progress(*first.ids, "import", 0.0, tr("Starting the engine")))
        load_torch_libraries()
        with imports_uncollected():
            from medusa_core.engine.executor import Executor
        return Executor(self._notify, self._is_cancelled)
