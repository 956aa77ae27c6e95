"""Notifications: on a bus of their own with a service that is as strict as real ones, and what is
told of which job."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVirtualObject
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.desktop.notification import DesktopNotification
from app.desktop.notifier import Notifier
from app.desktop.session_bus import BusNotices
from app.desktop.tray import TrayNotices
from app.window import job_notices
from app.window.main_window import MainWindow
from medusa_core.api import (
    BatchJob,
    DownloadJob,
    HeadsTraining,
    JobState,
    Pair,
)
from tests.support.window.driving import ask, wait_ready
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
ICON = Path("/icon.svg")
needs_bus = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("dbus-daemon") is None,
    reason="needs a D-Bus daemon",
)


class Service(QDBusVirtualObject):
    """A notification service that takes calls of the specified signature alone."""

    def __init__(self, abilities: list[str]) -> None:
        super().__init__()
        self.abilities = abilities
        self.shown: list[list[object]] = []

    def introspect(self, path: str) -> str:
        return ""

    def handleMessage(self, message: QDBusMessage, bus: QDBusConnection) -> bool:
        if message.member() == "GetCapabilities":
            return self.answer(message, bus, self.abilities)
        if message.member() == "Notify" and message.signature() == "susssasa{sv}i":
            self.shown.append(message.arguments())
            return self.answer(message, bus, len(self.shown))
        return False

    def answer(self, message: QDBusMessage, bus: QDBusConnection, value: object) -> bool:
        reply = message.createReply()
        reply.setArguments([value])
        return bool(bus.send(reply))

    def tell(self, bus: QDBusConnection, signal: str, *values: object) -> None:
        message = QDBusMessage.createSignal(PATH, NAME, signal)
        message.setArguments(list(values))
        bus.send(message)


@pytest.fixture
def bus(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[QDBusConnection]:
    """A session's bus for one test."""
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--print-address", "--nofork"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert daemon.stdout is not None
    address = daemon.stdout.readline().strip()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "")
    yield QDBusConnection.connectToBus(address, address)
    QDBusConnection.disconnectFromBus(address)
    daemon.kill()
    daemon.wait()
    daemon.stdout.close()


def serve(bus: QDBusConnection, *abilities: str) -> Service:
    service = Service(list(abilities))
    assert bus.registerVirtualObject(PATH, service)
    assert bus.registerService(NAME)
    return service


@needs_bus
def test_a_notification_is_shown_and_its_click_is_handled(
    qtbot: QtBot, bus: QDBusConnection
) -> None:
    service = serve(bus, "actions", "body", "body-markup")
    notices = BusNotices(ICON)
    with qtbot.waitSignal(notices.sent):
        notices.show(DesktopNotification("An answer is ready", "a < b & c"))
    said = service.shown[0]
    assert said[:5] == ["Medusa Chat", 0, str(ICON), "An answer is ready", "a &lt; b &amp; c"]
    assert said[5] == ["default", "Show"]
    clicks: list[bool] = []
    notices.clicked.connect(lambda: clicks.append(True))
    service.tell(bus, "ActivationToken", 1, "token")
    with qtbot.waitSignal(notices.clicked):
        service.tell(bus, "ActionInvoked", 1, "default")
    with qtbot.waitSignal(notices.sent):
        notices.show(DesktopNotification("Another one"))
    notices.close()
    assert len(clicks) == 1


@needs_bus
def test_a_notification_service_gets_only_what_it_supports(
    qtbot: QtBot, bus: QDBusConnection
) -> None:
    service = serve(bus)
    notices = BusNotices(ICON)
    with qtbot.waitSignal(notices.sent):
        notices.show(DesktopNotification("Title", "a < b"))
    assert service.shown[0][4:6] == ["a < b", []]
    notices.close()


@needs_bus
def test_without_a_service_or_a_bus_the_window_asks_for_attention(
    qtbot: QtBot, bus: QDBusConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = BusNotices(ICON)
    with qtbot.waitSignal(notices.failed):
        notices.show(DesktopNotification("Nobody serves"))
    notices.close()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    with qtbot.waitSignal(notices.failed):
        notices.show(DesktopNotification("No bus"))


@needs_bus
def test_the_session_bus_is_reconnected(qtbot: QtBot, bus: QDBusConnection) -> None:
    service = serve(bus)
    notices = BusNotices(ICON)
    with qtbot.waitSignal(notices.sent):
        notices.show(DesktopNotification("One"))
    assert notices._bus is not None
    notices._bus._connection.sock.shutdown(socket.SHUT_RDWR)
    qtbot.waitUntil(lambda: notices._bus is None)
    with qtbot.waitSignal(notices.sent):
        notices.show(DesktopNotification("Two"))
    assert [said[3] for said in service.shown] == ["One", "Two"]
    notices.close()


def test_closing_doesnt_wait_for_a_slow_notification_service(qtbot: QtBot) -> None:
    notices = BusNotices(ICON)
    with notices._lock:  # a thread that asks
        notices.close()


class Shown(QObject):
    """A service that shows nothing."""

    clicked, failed = Signal(), Signal()

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[DesktopNotification] = []

    def show(self, notice: DesktopNotification) -> None:
        self.notices.append(notice)

    def close(self) -> None:
        pass


def test_a_missing_tray_is_reported(qtbot: QtBot) -> None:
    tray = TrayNotices(QIcon())
    with qtbot.waitSignal(tray.failed):
        tray.show(DesktopNotification("Title"))
    tray.close()


def test_if_nothing_shows_notifications_the_window_asks_for_attention(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    asked: list[QWidget] = []
    monkeypatch.setattr(QApplication, "alert", lambda widget: asked.append(widget))
    monkeypatch.setattr(Notifier, "is_needed", True)
    notifier = Notifier(window, ICON)
    notifier.notify(DesktopNotification("No desktop"))
    assert asked == [window]
    service = Shown()
    notifier.use(service)
    notifier.notify(DesktopNotification("Shown"))
    assert (asked, service.notices) == ([window], [DesktopNotification("Shown")])
    service.failed.emit()
    assert asked == [window, window]


def test_nothing_is_notified_while_the_window_is_active(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    notifier, service = Notifier(window, ICON), Shown()
    notifier.use(service)
    for state in Qt.ApplicationState:
        monkeypatch.setattr(QApplication, "applicationState", lambda state=state: state)
        monkeypatch.setattr("app.desktop.notifier.QGuiApplication", QApplication)
        notifier.notify(DesktopNotification(state.name))
    assert "ApplicationActive" not in {notice.title for notice in service.notices}
    assert len(service.notices) == len(Qt.ApplicationState) - 1


@pytest.fixture
def told(
    qtbot: QtBot, open_fake: Open, monkeypatch: pytest.MonkeyPatch
) -> tuple[MainWindow, Shown]:
    """Inactive window, and its notifications."""
    monkeypatch.setattr(Notifier, "is_needed", True)
    window, _ = open_fake(Script(answer="It is Paris."))
    service = Shown()
    window.notices.notifier.use(service)
    wait_ready(qtbot, window)
    return window, service


def test_notifications_of_long_answers_dont_name_the_conversation(
    qtbot: QtBot, told: tuple[MainWindow, Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    window, service = told
    ask(qtbot, window, "A short one")
    assert service.notices == []
    monkeypatch.setattr(job_notices, "LONG_ANSWER_S", 0.0)
    ask(qtbot, window, "And of Spain?")
    assert service.notices == [DesktopNotification("An answer is ready")]
    window.settings.set(names_in_notices=True)
    ask(qtbot, window, "And of Italy?")
    assert service.notices[1:] == [DesktopNotification("An answer is ready", "A short one")]
    window.settings.set(notifies=False)
    ask(qtbot, window, "And of Malta?")
    assert len(service.notices) == 2


class Job:
    """A batch or a training that has ended so."""

    def __init__(self, stage: str) -> None:
        self.out = Path("/heads/tiny-heads")
        self.stage, self.spec = stage, None

    def state(self) -> "Job":
        return self

    def progress(self) -> "Job":
        return self


def test_other_jobs_are_notified_and_a_click_raises_the_window(
    told: tuple[MainWindow, Shown],
) -> None:
    window, service = told
    window.showMinimized()
    service.clicked.emit()
    assert not window.isMinimized()
    for stage in ("done", "failed"):
        window.notices.batch_ended(cast(BatchJob, Job(stage)))
        window.notices.training_ended(cast(HeadsTraining, Job(stage)))
    assert [notice.title for notice in service.notices] == [
        *("A batch is done", "Heads are trained"),
        *("A batch has stopped", "A training has stopped"),
    ]
    job = DownloadJob(2, Pair("org/tiny"), JobState.FAILED)
    window.models.download_ended.emit(job)
    window.settings.set(names_in_notices=True)
    window.models.download_ended.emit(replace(job, state=JobState.READY))
    assert service.notices[4:] == [
        DesktopNotification("A download has failed", ""),
        DesktopNotification("A download is ready", "org/tiny"),
    ]
