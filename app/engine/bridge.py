"""The only object of the window that knows the engine.

Events arrive in the worker's thread, thousands in a second. They wait in a deque under a lock, one
wake-up is posted for all that wait, and the window takes them at most 30 times a second. If
showing them takes long, it takes them less often, because drawing and decoding share the processor
and the interpreter lock. The first events of a command are taken without this delay. A prompt is
painted before the engine gets it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal

from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.api import Engine, EventSink
from medusa_core.errors import EngineError
from medusa_core.messages import (
    FINAL_EVENTS,
    Cancel,
    CloseSession,
    Command,
    Event,
    Failed,
    Generate,
)

log = logging.getLogger(__name__)

EngineFactory = Callable[[EventSink], Engine]
DRAIN_INTERVAL_S = 1 / 30
LONGEST_INTERVAL_S = 0.2
AT_ONCE_S = 0.1  # what takes less seems to take nothing (Miller 1968, on conversational computing)
_WATCH_MS = 1_000
_DIED = (
    QT_TRANSLATE_NOOP("Engine", "The engine stopped working and was started again."),
    QT_TRANSLATE_NOOP(
        "Engine", "The model is loaded anew; ask again. The diagnostics (Help) have the details."
    ),
)
_SHARE = 0.05  # of its time the window may spend on showing events
_MEMORY = 0.8  # of what showing took before: single tokens take less than what comes after them
_SHOWN, _REQUESTED = (
    QEvent.Type(QEvent.registerEventType()),
    QEvent.Type(QEvent.registerEventType()),
)
# What is posted so comes after layout and painting: the latter waits the longest.
_BEHIND_PAINTING = Qt.EventPriority.LowEventPriority.value - 1


class EngineBridge(QObject):
    """Commands to the engine, events from it.

    Signals:
        arrived: The events since the last time, as one tuple in order; in the window's thread.
        restarted: The engine had died, and another one has taken its place, without a model.
    """

    arrived = Signal(object)
    restarted = Signal()
    # Without payload: what it announces waits in the deque.
    _woken = Signal()

    def __init__(self, start_engine: EngineFactory) -> None:
        super().__init__()
        self._start_engine = start_engine
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._events: deque[Event] = deque()
        self._commands: deque[Command] = deque()
        self._wake_is_posted = False
        self._is_closed = False
        self._last_drain_s = 0.0
        self._next_drain_s = 0.0
        self._interval_s = DRAIN_INTERVAL_S
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._wake)
        self._open: dict[str, Command] = {}
        self._watch = QTimer(self)
        self._watch.setInterval(_WATCH_MS)
        self._watch.timeout.connect(self._look_after)
        self._woken.connect(self._wake, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Start the engine; call it once the window is visible."""
        self._engine = self._start_engine(self._receive)

    def submit(self, command: Command) -> None:
        """Hand a command to the engine, a question once it is painted; returns at once.

        After `close` nothing is handed over.
        """
        if self._is_closed:
            return
        self._commands.append(command)
        if isinstance(command, Generate):
            QCoreApplication.postEvent(self, QEvent(_REQUESTED), _BEHIND_PAINTING)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        assert self._engine is not None, "start() comes first"
        if not self._commands or self._is_closed:
            return
        while self._commands:
            command = self._commands.popleft()
            if not isinstance(command, Cancel | CloseSession):
                self._open[command.request_id] = command
            self._engine.submit(command)
        self._watch.start()
        self._next_drain_s = time.monotonic() + min(self._interval_s, AT_ONCE_S)
        if self._timer.isActive():
            self._timer.start(self._wait_ms())

    def close(self, timeout_s: float = 10.0) -> None:
        """End the engine; no event arrives afterwards. Safe to call twice."""
        with self._lock:
            self._is_closed = True
            self._events.clear()
        self._commands.clear()
        self._timer.stop()
        self._watch.stop()
        if self._engine is not None:
            self._engine.close(timeout_s)

    def _receive(self, event: Event) -> None:
        """Worker's thread: keep the event and wake the window, unless that is under way."""
        with self._lock:
            if self._is_closed:
                return
            self._events.append(event)
            if self._wake_is_posted:
                return
            self._wake_is_posted = True
        self._woken.emit()

    def event(self, event: QEvent) -> bool:
        if event.type() == _SHOWN:
            self._schedule_drain()
        elif event.type() == _REQUESTED:
            self._hand_over()
        else:
            return super().event(event)
        return True

    def _wake(self) -> None:
        if wait_ms := self._wait_ms():
            self._timer.start(wait_ms)
        else:
            self._drain()

    def _wait_ms(self) -> int:
        return max(0, round((self._next_drain_s - time.monotonic()) * 1000))

    def _drain(self) -> None:
        self._last_drain_s = time.monotonic()
        with self._lock:
            events = tuple(self._events)
            self._events.clear()
            self._wake_is_posted = False
        for event in events:
            if isinstance(event, FINAL_EVENTS):
                self._open.pop(event.request_id, None)
        if events:
            self._next_drain_s = self._last_drain_s + self._interval_s
            self.arrived.emit(events)
            QCoreApplication.postEvent(self, QEvent(_SHOWN), _BEHIND_PAINTING)

    def _look_after(self) -> None:
        """Check that the engine is alive while a request is open."""
        assert self._engine is not None
        if not self._open:
            self._watch.stop()
        elif not self._engine.is_alive:
            log.error("the engine's thread has ended; another one is started")
            lost = tuple(self._open.values())
            self._open.clear()
            self._engine.close(0)  # a part of it may live on
            self._engine = self._start_engine(self._receive)
            self.arrived.emit(tuple(Failed(*one.ids, EngineError.__name__, *_DIED) for one in lost))
            self.restarted.emit()

    def _schedule_drain(self) -> None:
        shown_s = time.monotonic() - self._last_drain_s
        wanted_s = max(DRAIN_INTERVAL_S, shown_s / _SHARE, self._interval_s * _MEMORY)
        self._interval_s = min(wanted_s, LONGEST_INTERVAL_S)
        self._next_drain_s = self._last_drain_s + self._interval_s
