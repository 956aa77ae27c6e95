"""One engine for a window and for the programs that it serves.

The window owns the engine: it starts it, ends it, and starts another one if it dies. Whoever joins
has sessions of their own, and gets their events alone; what concerns everybody, such as another
model, goes to all. No event costs the window anything that isn't its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from medusa_core.api import Engine, EventSink
from medusa_core.errors import EngineError
from medusa_core.messages import (
    Calibrated,
    Cancel,
    CloseSession,
    Command,
    Counted,
    EngineLost,
    Event,
    Failed,
    GenerationDone,
    ModelLoaded,
    Tokenized,
    Unloaded,
    Verified,
)

log = logging.getLogger(__name__)

_FOR_ALL = (ModelLoaded, Unloaded, EngineLost)
_ENDS = (Calibrated, Counted, Failed, GenerationDone, Tokenized, Verified)
_RequestIds = tuple[str, str]


class SharedEngine:
    """Starts an engine for its owner, and lets others join; for any threads.

    Attributes:
        loaded: The model that is loaded; None where none is.
        last_loaded: That one, or the one that was loaded last.
    """

    def __init__(self, start: Callable[[EventSink], Engine]) -> None:
        """Prepare.

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
        """Start the engine for its owner; in place of one that died, if there was one before."""
        with self._lock:
            self._owner, self.loaded = on_event, None
            guests = tuple(self._guests)
        engine = self._engine = self._start_engine(self._receive)
        for guest in guests:
            guest.fail_open_requests()
        return engine

    def join(self, on_event: EventSink) -> JoinedEngine:
        """The same engine for somebody else, who learns at once what is loaded."""
        guest = JoinedEngine(self, on_event)
        with self._lock:
            self._guests.append(guest)
            loaded = self.loaded
        if loaded is not None:
            on_event(loaded)
        return guest

    def leave(self, guest: JoinedEngine) -> None:
        """Let somebody go who had joined."""
        with self._lock:
            if guest in self._guests:
                self._guests.remove(guest)

    def submit(self, command: Command) -> None:
        """Hand a command to the engine.

        Raises:
            EngineError: Its owner hasn't started it yet.
        """
        if self._engine is None:
            raise EngineError("The engine hasn't started yet.", "Try again in a moment.")
        self._engine.submit(command)

    @property
    def is_alive(self) -> bool:
        """Whether the engine hears commands."""
        return self._engine is not None and self._engine.is_alive

    def _receive(self, event: Event) -> None:
        """The engine's thread: hand an event to whom it concerns."""
        with self._lock:
            guests, owner = tuple(self._guests), self._owner
            if isinstance(event, ModelLoaded | Unloaded):
                self.loaded = event if isinstance(event, ModelLoaded) else None
                self.last_loaded = self.loaded or self.last_loaded
        its_guest = next((guest for guest in guests if guest.owns(event.session_id)), None)
        for_all = isinstance(event, _FOR_ALL)
        receivers: list[EventSink] = []
        if owner is not None and (its_guest is None or for_all):
            receivers.append(owner)
        receivers += [guest.receive for guest in guests if guest is its_guest or for_all]
        for receive in receivers:
            try:
                receive(event)
            except Exception:
                log.exception("somebody fails at an event, which the others still get")


class JoinedEngine:
    """What somebody has who joined: an `Engine` whose end ends nothing but their own answers."""

    def __init__(self, shared: SharedEngine, on_event: EventSink) -> None:
        self._shared, self._on_event = shared, on_event
        self._sessions: set[str] = set()
        self._open: set[_RequestIds] = set()

    @property
    def is_alive(self) -> bool:
        return self._shared.is_alive

    def submit(self, command: Command) -> None:
        self._sessions.add(command.session_id)
        if not isinstance(command, Cancel | CloseSession):
            self._open.add((command.session_id, command.request_id))
        self._shared.submit(command)

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel what is under way, and forget the sessions; the engine goes on."""
        for session_id, request_id in tuple(self._open):
            self._shared.submit(Cancel(session_id, request_id))
        for session_id in tuple(self._sessions):
            self._shared.submit(CloseSession(session_id, "close"))
        self._shared.leave(self)

    def owns(self, session_id: str) -> bool:
        """Whether a session is theirs."""
        return session_id in self._sessions

    def receive(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, _ENDS):
            self._open.discard((event.session_id, event.request_id))
        self._on_event(event)

    def fail_open_requests(self) -> None:
        """Fail all open requests, because the engine has died."""
        for session_id, request_id in tuple(self._open):
            message = "The engine stopped working and was started again."
            hint = "Try again once the model is loaded."
            self.receive(Failed(session_id, request_id, EngineError.__name__, message, hint))
