"""The bridge: nothing lost, nothing out of order, not too often, nothing after the end."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QThread, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.engine import bridge as bridge_module
from app.engine.bridge import (
    AT_ONCE_S,
    LONGEST_INTERVAL_S,
    EngineBridge,
)
from medusa_core.api import EventSink
from medusa_core.messages import (
    Cancel,
    ChatMessage,
    Command,
    EngineLost,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    Progress,
    Role,
    Unload,
    Unloaded,
)


def progress(request_id: str = "r", text: str = "more") -> Progress:
    """An event that isn't the last one of a request."""
    return Progress("s", request_id, "weights", 0.5, text)


def failed(request_id: str) -> Failed:
    """The last event of a request."""
    return Failed("s", request_id, "EngineError", "no", "")


class Hose:
    """Engine that sends given events from its own thread."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.num_closed = 0
        self.is_alive = True

    def start(self, on_event: EventSink) -> "Hose":
        self.send_now = on_event
        return self

    def submit(self, command: Command) -> None:
        self.commands.append(command)

    def close(self, timeout_s: float = 10.0) -> None:
        self.num_closed += 1

    def send(
        self, num_events: int, interval_s: float = 0.0, request_id: str = "r"
    ) -> threading.Thread:
        def run() -> None:
            for number in range(num_events):
                self.send_now(progress(request_id, str(number)))
                time.sleep(interval_s)

        thread = threading.Thread(target=run)
        thread.start()
        return thread


class Listener:
    """Asker that records events and their thread."""

    def __init__(self, bridge: EngineBridge, request_id: str = "r") -> None:
        self.batches: list[tuple[Event, ...]] = []
        self.threads: set[QThread] = set()
        self.request = bridge.ask(Unload("s", request_id), self.take)

    def take(self, events: tuple[Event, ...]) -> None:
        self.batches.append(events)
        self.threads.add(QThread.currentThread())

    @property
    def texts(self) -> list[str]:
        events = [event for batch in self.batches for event in batch]
        return [event.text for event in events if isinstance(event, Progress)]


def started(hose: Hose) -> EngineBridge:
    """A bridge to an engine that runs."""
    bridge = EngineBridge(hose.start)
    bridge.start()
    return bridge


def test_all_events_arrive_in_order_in_the_window_thread(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = started(hose)
    listener = Listener(bridge)
    hose.send(500).join()
    qtbot.waitUntil(lambda: len(listener.texts) == 500)
    assert listener.texts == [str(number) for number in range(500)]
    assert listener.threads == {bridge.thread()}


def test_a_stream_of_events_wakes_the_window_at_most_thirty_times_a_second(qtbot: QtBot) -> None:
    hose = Hose()
    listener = Listener(started(hose))
    started_s = time.monotonic()
    thread = hose.send(300, interval_s=0.001)
    qtbot.waitUntil(lambda: len(listener.texts) == 300)
    elapsed_s = time.monotonic() - started_s
    thread.join()
    # One at once, one for each interval, and one millisecond of rounding in each of them.
    assert len(listener.batches) <= elapsed_s * 31.3 + 1
    assert max(len(batch) for batch in listener.batches) > 1


class Clock:
    """Clock of the bridge, which goes on only as a test says: real ones depend on the machine."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(bridge_module, "time", found)
    return found


class SlowPainter(QWidget):
    """Widget that paints slowly.

    Attributes:
        arrivals: When events came.
        painted: Called when it has painted.
    """

    def __init__(self, qtbot: QtBot, hose: Hose, clock: Clock) -> None:
        super().__init__()
        self.arrivals: list[float] = []
        self.painted: Callable[[], None] = lambda: None
        self.bridge = started(hose)
        self._qtbot, self._hose, self._clock = qtbot, hose, clock
        self.bridge.ask(Unload("s", "r"), self.take)
        qtbot.addWidget(self)
        self.show()
        qtbot.waitExposed(self)

    def take(self, events: tuple[Event, ...]) -> None:
        self.arrivals.append(self._clock.now_s)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        self._clock.now_s += 0.01
        self.painted()

    def check_arrival(self, at_s: float) -> None:
        """Events arrive at a time, and not before; wait until they are shown."""
        before = len(self.arrivals)
        self._hose.send_now(progress())
        self._clock.now_s = at_s - 0.02
        self._qtbot.wait(50)
        assert len(self.arrivals) == before
        self._clock.now_s = at_s
        self.wait_for(before + 1)

    def wait_for(self, num_arrivals: int) -> None:
        """Wait until events have come so many times, and the last ones are shown."""
        self._qtbot.waitUntil(lambda: len(self.arrivals) == num_arrivals)
        later: list[bool] = []
        QTimer.singleShot(0, lambda: later.append(True))  # after what is posted now
        self._qtbot.waitUntil(lambda: bool(later))


def test_slow_painting_lowers_the_refresh_rate(qtbot: QtBot, clock: Clock) -> None:
    hose = Hose()
    painter = SlowPainter(qtbot, hose, clock)
    clock.now_s += 1
    hose.send_now(progress())
    painter.wait_for(1)
    for _ in range(3):
        painter.check_arrival(painter.arrivals[-1] + 0.2)  # 10 ms are a twentieth of it


def test_the_first_event_of_a_command_is_shown_at_once_and_later_ones_at_the_refresh_rate(
    qtbot: QtBot, clock: Clock
) -> None:
    hose = Hose()
    painter = SlowPainter(qtbot, hose, clock)
    clock.now_s += 1
    hose.send_now(progress())
    painter.wait_for(1)
    painter.hide()  # now showing takes nothing
    clock.now_s = submitted_s = painter.arrivals[0] + 0.05
    painter.bridge.submit(Unload("s", "other"))
    painter.check_arrival(submitted_s + AT_ONCE_S)
    painter.check_arrival(painter.arrivals[-1] + 0.8 * LONGEST_INTERVAL_S)


def test_no_event_arrives_after_closing(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = started(hose)
    listener = Listener(bridge)
    hose.send(10).join()
    bridge.close()
    hose.send(10).join()
    later = Listener(started(clock := Hose()))
    clock.send(1).join()
    qtbot.waitUntil(lambda: bool(later.batches))  # what is sent now comes behind what was before
    assert listener.batches == []


def test_closing_twice_is_allowed_and_a_bridge_that_never_started_can_be_closed() -> None:
    hose = Hose()
    bridge = EngineBridge(hose.start)
    bridge.close()
    assert hose.num_closed == 0
    bridge = EngineBridge(hose.start)
    bridge.start()
    bridge.close()
    bridge.close()
    assert hose.num_closed == 2


def test_events_of_one_drain_are_delivered_to_each_asker_together(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = started(hose)
    left, right = Listener(bridge, "left"), Listener(bridge, "right")
    for number in range(3):
        hose.send_now(progress("left", f"l{number}"))
        hose.send_now(progress("right", f"r{number}"))
        hose.send_now(progress("nobody"))
    hose.send_now(failed("left"))
    qtbot.waitUntil(lambda: left.request.is_done)
    qtbot.waitUntil(lambda: len(right.texts) == 3)
    assert left.texts == ["l0", "l1", "l2"]
    assert (len(left.batches), len(right.batches)) == (1, 1)
    assert bridge.is_busy
    hose.send_now(failed("right"))
    qtbot.waitUntil(lambda: not bridge.is_busy)
    assert (left.batches[-1][-1], right.batches[-1][-1]) == (failed("left"), failed("right"))


def test_model_events_are_broadcast_in_their_order(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = started(hose)
    seen: list[Event] = []
    unload = bridge.ask(Unload("s", "unload"), seen.extend)
    bridge.ask(Unload("s", "r"), seen.extend)
    bridge.model_changed.connect(seen.append)
    bridge.engine_lost.connect(seen.append)
    gone, lost = Unloaded("s", "unload", 1), EngineLost("s", "r", "EngineLost", "no", "")
    sent = (progress("r", "before"), gone, progress("r", "after"), lost)
    for event in sent:
        hose.send_now(event)
    qtbot.waitUntil(lambda: not bridge.is_busy)
    assert seen == [*sent, lost], "the last one for its asker, and for all"
    assert unload.is_done


@pytest.mark.parametrize("way", ["freed", "deleted in Qt", "dropped"])
def test_a_deleted_asker_is_not_called_and_its_request_is_cancelled(qtbot: QtBot, way: str) -> None:
    hose = Hose()
    bridge = started(hose)
    calls: list[tuple[object, ...]] = []

    class Asker(QObject):
        def take(self, *arguments: object) -> None:
            calls.append(arguments)

    asker: Asker | None = Asker()
    assert asker is not None
    request = bridge.ask(Unload("s", "r"), partial(asker.take, "bound"))
    hose.send_now(progress())
    qtbot.waitUntil(lambda: bool(calls))
    assert calls == [("bound", (progress(),))]
    if way == "freed":
        asker = None
    elif way == "deleted in Qt":
        delete(asker)
    else:
        request.drop()
    hose.send_now(progress())
    hose.send_now(failed("r"))
    qtbot.waitUntil(lambda: not bridge.is_busy)
    assert len(calls) == 1
    assert request.is_done
    if way == "dropped":
        assert hose.commands[1:] == [Cancel("s", "r")]


def test_an_asker_that_fails_affects_no_other(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    hose = Hose()
    bridge = started(hose)
    reported: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: reported.append(error))

    def fail(_events: tuple[Event, ...]) -> None:
        raise ValueError("of the asker")

    bridge.ask(Unload("s", "fails"), fail)
    other = Listener(bridge)
    hose.send_now(failed("fails"))
    hose.send_now(progress())
    qtbot.waitUntil(lambda: bool(other.batches))
    assert [str(error) for error in reported] == ["of the asker"]


@pytest.mark.expects_errors
def test_requests_of_a_dead_engine_fail_and_are_not_repeated(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "_WATCH_MS", 10)
    hose = Hose()
    bridge = started(hose)
    listener = Listener(bridge)
    hose.is_alive = False
    hose.commands.clear()
    with qtbot.waitSignal(bridge.restarted):
        pass
    hose.is_alive = True
    (event,) = listener.batches[-1]
    assert isinstance(event, Failed)
    assert event.ids == ("s", "r")
    assert listener.request.is_done
    assert not bridge.is_busy
    assert hose.commands == []


ASK = Generate("s", "ask", (ChatMessage(Role.USER, "hi"),), GenerateSettings())


def test_an_answer_starts_after_its_question_is_painted(qtbot: QtBot, clock: Clock) -> None:
    hose = Hose()
    painter = SlowPainter(qtbot, hose, clock)
    seen: list[int] = []
    painter.painted = lambda: seen.append(len(hose.commands))
    qtbot.waitUntil(lambda: bool(seen))
    seen.clear()
    painter.update()
    painter.bridge.ask(ASK, lambda _events: None)
    painter.update()  # what is still to be painted counts too
    assert ASK not in hose.commands
    qtbot.waitUntil(lambda: ASK in hose.commands)
    assert seen == [1], "the painter's own command"


def test_commands_keep_their_order_after_a_delayed_question(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = EngineBridge(hose.start)
    bridge.start()
    again, cancel = replace(ASK, request_id="again"), Cancel("s", "cancel")
    bridge.submit(ASK)
    bridge.submit(again)
    bridge.submit(cancel)
    assert hose.commands == [ASK, again, cancel]
    QCoreApplication.processEvents()
    assert hose.commands == [ASK, again, cancel]


def test_a_delayed_command_is_dropped_with_the_window(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = EngineBridge(hose.start)
    bridge.start()
    bridge.submit(ASK)
    bridge.close()
    QCoreApplication.processEvents()
    assert hose.commands == []


class Emitter(QObject):
    """Signals of the kinds that the window uses."""

    bare = Signal()
    flag = Signal(bool)
    thing = Signal(object)


def test_emitting_signals_leaves_reference_counts_alone(qtbot: QtBot) -> None:
    """One release of PySide6 dropped a reference with every emit, and then ended the process."""
    emitter = Emitter()
    thing = (Progress("s", "r", "weights", 0.5, ""),)
    emitter.thing.connect(lambda _thing: None)
    watched = (None, True, thing)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(50):
        emitter.bare.emit()
        emitter.flag.emit(True)
        emitter.thing.emit(thing)
        emitter.blockSignals(False)
    after = [sys.getrefcount(item) for item in watched]
    # Other threads and caches may hold None and True for a moment; 50 lost ones stand out.
    assert all(abs(late - early) < 20 for early, late in zip(before, after, strict=True))
    assert after[2] == before[2]


def test_commands_before_the_start_are_queued(qtbot: QtBot) -> None:
    hose = Hose()
    bridge = EngineBridge(hose.start)
    listener = Listener(bridge)
    assert hose.commands == []
    bridge.start()
    assert hose.commands == [listener.request.command]
    hose.send_now(failed("r"))
    qtbot.waitUntil(lambda: listener.request.is_done)


def test_a_request_after_the_end_is_done(qapp: QCoreApplication) -> None:
    hose = Hose()
    bridge = started(hose)
    bridge.close()
    assert Listener(bridge).request.is_done
    assert not bridge.is_busy
    assert hose.commands == []
