"""One real engine for all windows of a module."""

import time
from collections.abc import Iterator

import pytest

from medusa_core.api import Engine, EventSink, start_engine
from medusa_core.messages import Command, Event


class SharedEngine:
    """One real engine for all windows of a module, so that torch is imported once.

    Attributes:
        events: What it has told.
        pause_s: Seconds that it waits at every event: else an answer may be complete before a
            window shows what came first.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.pause_s = 0.0
        self._sink: EventSink | None = None
        self._engine: Engine = start_engine(self._receive)

    def start(self, on_event: EventSink) -> "SharedEngine":
        self._sink = on_event
        return self

    @property
    def is_alive(self) -> bool:
        return self._engine.is_alive

    def submit(self, command: Command) -> None:
        self._engine.submit(command)

    def close(self, timeout_s: float = 10.0) -> None:
        """The window is gone; the engine stays for the next one."""
        self._sink = None

    def end(self) -> None:
        self._engine.close()

    def _receive(self, event: Event) -> None:
        self.events.append(event)
        time.sleep(self.pause_s)
        sink = self._sink
        if sink is not None:
            sink(event)


@pytest.fixture(scope="module")
def engine() -> Iterator[SharedEngine]:
    shared = SharedEngine()
    yield shared
    shared.end()
