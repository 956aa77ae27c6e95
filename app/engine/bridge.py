"""Bridge between the window's thread and the engine's worker thread.

Events arrive in the worker's thread, thousands per second. They are queued in a deque under a lock
with one wake-up for all, and the window's thread drains the queue at most 30 times per second; less
often if painting is slow, because painting and decoding share the processor and the GIL. The first
events of a command are delivered without this delay. A prompt is painted before it is sent.

Events of a request are delivered to its receiver in batches. Only changes of the model, its plans
and the loss of the engine are broadcast.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from types import MethodType
from weakref import WeakMethod

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal
from shiboken6 import isValid

from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.api import Engine, EventSink
from medusa_core.chats.conversation import new_id
from medusa_core.errors import EngineError
from medusa_core.messages import (
    FINAL_EVENTS,
    Cancel,
    CloseSession,
    Command,
    EngineLost,
    Event,
    Failed,
    Generate,
    ModelLoaded,
    Planned,
    Unloaded,
)

log = logging.getLogger(__name__)

EngineFactory = Callable[[EventSink], Engine]
OnEvents = Callable[[tuple[Event, ...]], None]
ModelEvent = ModelLoaded | Unloaded | Planned
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


class Request:
    """A pending command with the receiver of its events.

    Attributes:
        command: The command.
        is_done: Whether the last event was delivered or the request was dropped.
    """

    def __init__(self, bridge: EngineBridge, command: Command, on_events: OnEvents) -> None:
        self.command = command
        self.is_done = False
        self._bridge = bridge
        self._asker = _weak_callback(on_events)

    def cancel(self) -> None:
        """Cancel the request; its partial result or a `Failed` is still delivered."""
        if not self.is_done:
            self._bridge.submit(Cancel(*self.command.ids))

    def drop(self) -> None:
        """Cancel the request and discard its further events."""
        self.cancel()
        self.is_done = True

    def deliver(self, events: tuple[Event, ...]) -> None:
        """Deliver events to the receiver; drop the request if it is gone.

        An exception of the receiver is reported and doesn't affect other requests.
        """
        if self.is_done:
            return
        self.is_done = isinstance(events[-1], FINAL_EVENTS)
        on_events = self._asker()
        if on_events is None:
            self.drop()
            return
        try:
            on_events(events)
        except Exception as error:  # noqa: BLE001 - as Qt does for a slot: the others go on
            sys.excepthook(type(error), error, error.__traceback__)


def _weak_callback(on_events: OnEvents) -> Callable[[], OnEvents | None]:
    """Return a weak reference to a bound method or a partial of one.

    Returns:
        Function that returns the callback; None if its object or Qt part is deleted.
    """
    bound: tuple[object, ...] = ()
    method: Callable[..., None] = on_events
    if isinstance(on_events, partial):
        method, bound = on_events.func, on_events.args
    if not isinstance(method, MethodType):
        return lambda: on_events
    reference = WeakMethod(method)

    def resolve() -> OnEvents | None:
        alive = reference()
        if alive is None:
            return None
        owner = alive.__self__
        if isinstance(owner, QObject) and not isValid(owner):
            return None
        return partial(alive, *bound)

    return resolve


class EngineBridge(QObject):
    """Sends commands to the engine and delivers its events.

    Signals:
        model_changed: The engine's model changed (`ModelLoaded`, `Unloaded` or `Planned`).
        engine_lost: The device failed (an `EngineLost`); the program must be restarted.
        restarted: A dead engine was replaced by a new one without a model.
    """

    model_changed = Signal(object)
    engine_lost = Signal(object)
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
        self._requests: dict[str, Request] = {}
        self._watch = QTimer(self)
        self._watch.setInterval(_WATCH_MS)
        self._watch.timeout.connect(self._check_engine)
        self._woken.connect(self._wake, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Start the engine; call this once the window is visible.

        It gets the commands that were submitted before.
        """
        self._engine = self._start_engine(self._receive)
        self._hand_over()

    @property
    def is_busy(self) -> bool:
        """Whether a request is pending."""
        return bool(self._requests)

    def ask(self, command: Command, on_events: OnEvents) -> Request:
        """Send a command to the engine.

        Args:
            command: The command; a prompt is sent once it is painted.
            on_events: Called in the window's thread with batches of events, the last of which is
                one of `FINAL_EVENTS`; a `Failed` if the engine dies. Events of the model are
                sent by `model_changed` instead. Methods are referenced weakly: once their
                object is gone, the request is cancelled.

        Returns:
            The request; after `close` it is done, and gets no event.
        """
        request = Request(self, command, on_events)
        if self._is_closed:
            request.is_done = True
            return request
        self._requests[command.request_id] = request
        self.submit(command)
        return request

    def close_session(self, session_id: str) -> None:
        """Cancel the requests of a session and free its cache."""
        self.submit(CloseSession(session_id, new_id()))

    def submit(self, command: Command) -> None:
        """Send a command without a receiver of its events; ignored after `close`.

        Before `start` it is queued.
        """
        if self._is_closed:
            return
        self._commands.append(command)
        if isinstance(command, Generate):
            QCoreApplication.postEvent(self, QEvent(_REQUESTED), _BEHIND_PAINTING)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._engine is None or not self._commands or self._is_closed:
            return
        while self._commands:
            command = self._commands.popleft()
            self._engine.submit(command)
        self._watch.start()
        self._next_drain_s = time.monotonic() + min(self._interval_s, AT_ONCE_S)
        if self._timer.isActive():
            self._timer.start(self._wait_ms())

    def close(self, timeout_s: float = 10.0) -> None:
        """Stop the engine; no event arrives afterwards. Safe to call twice."""
        with self._lock:
            self._is_closed = True
            self._events.clear()
        self._commands.clear()
        self._requests.clear()
        self._timer.stop()
        self._watch.stop()
        if self._engine is not None:
            self._engine.close(timeout_s)

    def _receive(self, event: Event) -> None:
        """Queue an event and wake the window's thread, once. Runs in the worker's thread."""
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
        if events:
            self._next_drain_s = self._last_drain_s + self._interval_s
            self._deliver(events)
            QCoreApplication.postEvent(self, QEvent(_SHOWN), _BEHIND_PAINTING)

    def _deliver(self, events: tuple[Event, ...]) -> None:
        """Deliver events to their requests; broadcast events keep their order."""
        batches: dict[str, list[Event]] = {}
        for event in events:
            if isinstance(event, ModelEvent):
                self._deliver_batches(batches)
                if isinstance(event, FINAL_EVENTS) and event.request_id in self._requests:
                    self._requests.pop(event.request_id).is_done = True
                self.model_changed.emit(event)
            else:
                batches.setdefault(event.request_id, []).append(event)
                if isinstance(event, EngineLost):
                    self._deliver_batches(batches)
                    self.engine_lost.emit(event)
        self._deliver_batches(batches)

    def _deliver_batches(self, batches: dict[str, list[Event]]) -> None:
        for request_id, events in batches.items():
            is_last = isinstance(events[-1], FINAL_EVENTS)
            request = (self._requests.pop if is_last else self._requests.get)(request_id, None)
            if request is not None:
                request.deliver(tuple(events))
        batches.clear()

    def _check_engine(self) -> None:
        """Start another engine if its thread has ended, and fail all open requests."""
        assert self._engine is not None
        if not self._requests:
            self._watch.stop()
        elif not self._engine.is_alive:
            log.error("the engine's thread has ended; another one is started")
            lost = tuple(self._requests.values())
            self._requests.clear()
            self._commands.clear()
            self._engine.close(0)  # a part of it may live on
            self._engine = self._start_engine(self._receive)
            for request in lost:
                request.deliver((Failed(*request.command.ids, EngineError.__name__, *_DIED),))
            self.restarted.emit()

    def _schedule_drain(self) -> None:
        shown_s = time.monotonic() - self._last_drain_s
        wanted_s = max(DRAIN_INTERVAL_S, shown_s / _SHARE, self._interval_s * _MEMORY)
        self._interval_s = min(wanted_s, LONGEST_INTERVAL_S)
        self._next_drain_s = self._last_drain_s + self._interval_s
