"""Limits of a tool server: time, size of its output, number and size of its tools."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from medusa_core.errors import ToolError
from medusa_core.i18n import tr


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each server.

    Attributes:
        start_s: Time until a server has listed its tools; npx and uvx download it first.
        call_s: Time of a call, unless the server's settings say otherwise.
        write_s: Time in which the server must read a message.
        stop_s: Time to end by itself, then again after SIGTERM, before SIGKILL.
        relist_s: Shortest time between two lists of tools.
        line_bytes: Longest message.
        window_s: Time in which the following two are counted.
        window_bytes: Most bytes that a server writes in that time.
        window_messages: Most messages.
        tools: Most tools.
        tool_bytes: Largest description and schema of a tool.
        list_bytes: Largest descriptions and schemas of all tools together.
        schema_depth: Deepest nesting of a schema.
        log_lines: Last lines that are kept of the log.
        log_chars: Longest line of the log.
    """

    start_s: float = 120.0
    call_s: float = 60.0
    write_s: float = 10.0
    stop_s: float = 0.5
    relist_s: float = 1.0
    line_bytes: int = 8 << 20
    window_s: float = 60.0
    window_bytes: int = 32 << 20
    window_messages: int = 6000
    tools: int = 256
    tool_bytes: int = 64 << 10
    list_bytes: int = 512 << 10
    schema_depth: int = 32
    log_lines: int = 500
    log_chars: int = 500


DEFAULT_LIMITS = Limits()


class OutputBudget:
    """Counts what a server writes, and ends a server that writes without end."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now = now
        self._start_s = now()
        self._bytes = 0
        self._messages = 0

    def count(self, num_bytes: int = 0, num_messages: int = 0) -> None:
        """Count bytes and messages.

        Raises:
            ToolError: The server writes too much.
        """
        if self._now() - self._start_s > self._limits.window_s:
            self._start_s, self._bytes, self._messages = self._now(), 0, 0
        self._bytes += num_bytes
        self._messages += num_messages
        if self._bytes > self._limits.window_bytes or self._messages > self._limits.window_messages:
            raise ToolError(tr("The server writes without end, so it was stopped."))
