"""A real engine in its thread, with its events in a list that tests can wait on."""

import threading
from collections.abc import Callable
from typing import TypeVar

from medusa_core.api import start_engine
from medusa_core.messages import (
    Command,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    ModelLoaded,
)
from tests.support.engine.laws import user_says

E = TypeVar("E", bound=Event)
WAIT_S = 120.0


class EngineHarness:
    """Submits commands and waits for events.

    Attributes:
        events: All events so far, in order.
        on_event: Called in the worker's thread with every event, after it is in the list.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda _: None
        self._arrived = threading.Condition()
        self.engine = start_engine(self._take)
        self._num_requests = 0

    def submit(self, command: Command) -> None:
        self.engine.submit(command)

    def close(self) -> None:
        self.engine.close()

    def name_request(self) -> str:
        """Return a unique request id."""
        self._num_requests += 1
        return f"r{self._num_requests}"

    def wait(self, request_id: str, *kinds: type[Event]) -> Event:
        """The first event of one of these kinds that belongs to a request."""

        def found() -> Event | None:
            for event in self.events:
                if event.request_id == request_id and isinstance(event, kinds):
                    return event
            return None

        with self._arrived:
            assert self._arrived.wait_for(found, WAIT_S), f"no {kinds} of {request_id}"
        event = found()
        assert event is not None
        return event

    def load(self, command: LoadModel) -> ModelLoaded | Failed:
        """Load a model and wait for the outcome."""
        self.submit(command)
        event = self.wait(command.request_id, ModelLoaded, Failed)
        assert isinstance(event, ModelLoaded | Failed)
        return event

    def answer(
        self, text: str, settings: GenerateSettings, session_id: str = "s"
    ) -> GenerationDone | Failed:
        """Answer a prompt and wait for the end."""
        command = Generate(session_id, self.name_request(), user_says(text), settings)
        self.submit(command)
        event = self.wait(command.request_id, GenerationDone, Failed)
        assert isinstance(event, GenerationDone | Failed)
        return event

    def of(self, request_id: str, kind: type[E]) -> list[E]:
        """Return all events of a type that belong to a request."""
        return [e for e in self.events if e.request_id == request_id and isinstance(e, kind)]

    def _take(self, event: Event) -> None:
        with self._arrived:
            self.events.append(event)
            self._arrived.notify_all()
        self.on_event(event)
