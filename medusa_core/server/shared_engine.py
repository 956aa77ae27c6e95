"""Share one engine between a window and its server.

The window owns the engine: it starts and ends it, and restarts it if it dies. A guest has its own
sessions and gets only their events; events about the model go to all. The window doesn't get the
guests' events, so that serving costs it nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from medusa_core.api import Engine, EventSink
from medusa_core.errors import EngineError
from medusa_core.i18n import tr
from medusa_core.messages import (
    FINAL_EVENTS,
    Cancel,
    CloseSession,
    Command,
    EngineLost,
    Event,
    Failed,
    LoadModel,
    ModelLoaded,
    Unloaded,
)
from medusa_core.server.served_models import ServedModel

log = logging.getLogger(__name__)

_FOR_ALL = (ModelLoaded, Unloaded, EngineLost)
_RequestIds = tuple[str, str]


class SharedEngine:
    """An engine with an owner and guests; thread-safe.

    Attributes:
        loaded: Event of the loaded model; None for no model.
        last_loaded: Event of the model that is or was loaded last.
    """

    def __init__(self, start: Callable[[EventSink], Engine]) -> None:
        """Share an engine that isn't started yet.

        Args:
            start: Starts the engine.
        """
        self._start_engine = start
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._owner: EventSink | None = None
        self._guests: list[JoinedEngine] = []
        self.loaded: ModelLoaded | None = None
        self.last_loaded: ModelLoaded | None = None

    def start(self, on_event: EventSink) -> Engine:
        """Start the engine for its owner, or replace the one that died."""
        with self._lock:
            self._owner, self.loaded = on_event, None
            guests = tuple(self._guests)
        engine = self._engine = self._start_engine(self._receive)
        for guest in guests:
            guest.fail_open_requests()
        return engine

    def join(self, on_event: EventSink) -> JoinedEngine:
        """Add a guest, and send it the event of the loaded model."""
        guest = JoinedEngine(self, on_event)
        with self._lock:
            self._guests.append(guest)
            loaded = self.loaded
        if loaded is not None:
            on_event(loaded)
        return guest

    def leave(self, guest: JoinedEngine) -> None:
        """Remove a guest."""
        with self._lock:
            if guest in self._guests:
                self._guests.remove(guest)

    def submit(self, command: Command) -> None:
        """Submit a command to the engine.

        Raises:
            EngineError: The engine hasn't been started yet.
        """
        if self._engine is None:
            raise EngineError("The engine hasn't started yet.", "Try again in a moment.")
        self._engine.submit(command)

    @property
    def is_alive(self) -> bool:
        """Whether the engine executes commands."""
        return self._engine is not None and self._engine.is_alive

    def _receive(self, event: Event) -> None:
        """Pass an event to the owner or to a guest; runs in the engine's thread."""
        with self._lock:
            guests, owner = tuple(self._guests), self._owner
            if isinstance(event, ModelLoaded | Unloaded):
                self.loaded = event if isinstance(event, ModelLoaded) else None
                self.last_loaded = self.loaded or self.last_loaded
        addressed = next((guest for guest in guests if guest.owns(event.session_id)), None)
        for_all = isinstance(event, _FOR_ALL)
        receivers: list[EventSink] = []
        if owner is not None and (addressed is None or for_all):
            receivers.append(owner)
        receivers += [guest.receive for guest in guests if guest is addressed or for_all]
        for receive in receivers:
            try:
                receive(event)
            except Exception:
                log.exception("a receiver failed at an event; the others still get it")


class JoinedEngine:
    """A guest's view of the engine; closing it ends only the guest's answers."""

    def __init__(self, shared: SharedEngine, on_event: EventSink) -> None:
        self._shared, self._on_event = shared, on_event
        self._sessions: set[str] = set()
        self._open: set[_RequestIds] = set()

    @property
    def is_alive(self) -> bool:
        """Whether the shared engine executes commands."""
        return self._shared.is_alive

    def submit(self, command: Command) -> None:
        """Submit a command and remember what is open."""
        self._sessions.add(command.session_id)
        if not isinstance(command, Cancel | CloseSession):
            self._open.add(command.ids)
        self._shared.submit(command)

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel the open requests and close the sessions; the engine keeps running."""
        for session_id, request_id in tuple(self._open):
            self._shared.submit(Cancel(session_id, request_id))
        for session_id in tuple(self._sessions):
            self._shared.submit(CloseSession(session_id, "close"))
        self._shared.leave(self)

    def owns(self, session_id: str) -> bool:
        """Return whether the guest opened a session."""
        return session_id in self._sessions

    def receive(self, event: Event) -> None:
        """Receive an event of the engine."""
        if isinstance(event, FINAL_EVENTS):
            self._open.discard(event.ids)
        self._on_event(event)

    def fail_open_requests(self) -> None:
        """Fail all open requests after the engine has died."""
        for session_id, request_id in tuple(self._open):
            message = tr("The engine stopped working and was started again.")
            hint = tr("Try again once the model is loaded.")
            self.receive(Failed(session_id, request_id, EngineError.__name__, message, hint))


class SleepingModel:
    """Offers the window's model while it is unloaded for lack of use.

    Clients can't load other models: that would change the model of the user's conversation.
    """

    def __init__(self, shared: SharedEngine, wake: Callable[[], None]) -> None:
        """Offer the model.

        Args:
            shared: The engine.
            wake: Makes the window load the model again; called in any thread.
        """
        self._shared, self._wake = shared, wake

    def models(self) -> tuple[ServedModel, ...]:
        """Return the unloaded model, if it was the last one loaded."""
        last = self._shared.last_loaded
        if last is None or last.is_remote or self._shared.loaded is not None:
            return ()
        return (ServedModel(last.name),)

    def load_command(self, model: ServedModel) -> LoadModel | None:
        """Wake the window, which loads the model itself."""
        self._wake()
        return None
