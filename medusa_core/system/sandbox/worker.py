"""A sandboxed worker with limits of time and memory, which is replaced after it failed.

Why a process, not only a sandbox in Python: `'%1000000000d'`, `[1] * 10**9`, `7**n`, nested loops,
recursive macros, a grammar that exhausts the stack, … Each would need a limit of its own, and one
that was forgotten would hang or end the engine. A process has one limit for all of them.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from medusa_core.errors import MedusaError
from medusa_core.system.sandbox.process import Sandbox, nothing

log = logging.getLogger(__name__)

WORKER_BYTES = 512 << 20
_SPARE_BYTES = 64 << 20  # resident memory of Python and its libraries beyond the limit
_START_S = 30.0  # on a busy machine, from a cold disk


class WorkerErrors(NamedTuple):
    """Make the errors of a worker.

    Attributes:
        start: The process can't be started.
        memory: It takes too much memory.
        time: It takes too much time; given the seconds waited.
        end: It ended without an answer.
    """

    start: Callable[[OSError], MedusaError]
    memory: Callable[[], MedusaError]
    time: Callable[[float], MedusaError]
    end: Callable[[], MedusaError]


class WorkerProcess:
    """Sends requests to a worker; for one thread.

    Attributes:
        sandbox: The running process, or None.
    """

    def __init__(
        self,
        module: str,
        errors: WorkerErrors,
        memory_bytes: int = WORKER_BYTES,
        max_line_chars: int = 1 << 16,
    ) -> None:
        """Prepare; `start` starts the process.

        Args:
            module: Module of the worker.
            errors: Errors to raise.
            memory_bytes: Address space that the worker limits itself to.
            max_line_chars: Longest answer.
        """
        self._module, self._errors, self._max_line_chars = module, errors, max_line_chars
        self._max_resident_bytes = memory_bytes + _SPARE_BYTES
        self.sandbox: Sandbox | None = None
        self._close: Callable[[], object] | None = None

    def start(self) -> None:
        """Start the process, and wait until it is ready.

        Raises:
            MedusaError: It can't be started, or fails.
        """
        try:
            self.sandbox = Sandbox(self._module, self._max_line_chars)
        except OSError as error:
            raise self._errors.start(error) from error
        self._close = weakref.finalize(self, self.sandbox.close)
        self._receive(self.sandbox, _START_S)

    def request(
        self, message: object, time_s: float, while_waiting: Callable[[], None] = nothing
    ) -> dict[str, Any]:
        """Send a message and return the answer.

        Args:
            time_s: Timeout in seconds.
            while_waiting: Called many times a second; its exception is passed on.

        Raises:
            MedusaError: The worker took too much time or memory; it is ended.
        """
        assert self.sandbox is not None
        self.sandbox.send(message)
        return self._receive(self.sandbox, time_s, while_waiting)

    def kill(self) -> None:
        """Kill the process, also while another thread waits for an answer, which then fails."""
        if (sandbox := self.sandbox) is not None:
            sandbox.kill()

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self.sandbox = None
        if self._close is not None:
            self._close()

    def _receive(
        self, sandbox: Sandbox, time_s: float, while_waiting: Callable[[], None] = nothing
    ) -> dict[str, Any]:
        """Receive the answer within limits of time and memory."""

        def check() -> None:
            """Raise if the worker uses too much memory."""
            while_waiting()
            if sandbox.resident_bytes() > self._max_resident_bytes:
                raise self._errors.memory()

        answer = None
        try:
            answer = sandbox.receive(time_s, check)
        except TimeoutError:
            raise self._errors.time(time_s) from None
        finally:
            if answer is None:
                log.debug("output of the failed worker: %s", sandbox.last_words())
                self.close()
        if answer is None:
            raise self._errors.end()
        return answer
