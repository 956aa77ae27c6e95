"""The switch that lets other programs use the model, with a server that follows a script."""

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.server.requests_model import MOST_REQUESTS, RequestsModel
from app.server.server_dialog import ServerDialog
from app.server.server_switch import ServerEvents, ServerPhase, ServerSwitch
from medusa_core.errors import MissingExtraError, RequestError
from medusa_core.server.request_log import RequestRecord
from tests.support.window.fixtures import Open
from tests.support.window.scripted_server import ScriptedServer, Servers

RECORD = RequestRecord(
    time=1_760_000_000.0,
    method="POST",
    path="/v1/chat/completions",
    status=200,
    model="pebble",
    prompt_tokens=1200,
    answer_tokens=64,
    tokens_per_s=71.26,
    seconds=0.98,
)


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.fixture
def dialog(qtbot: QtBot, servers: Servers) -> ServerDialog:
    switch = ServerSwitch(servers.make)
    shown = ServerDialog(switch)
    shown.switched.connect(lambda on: switch.turn_on(8642) if on else switch.turn_off())
    qtbot.addWidget(shown)
    shown.show()
    return shown


def cells(model: RequestsModel, row: int = 0) -> list[object]:
    return [model.data(model.index(row, column)) for column in range(1, model.columnCount())]


def test_the_switch_turns_the_server_on_and_off(
    qtbot: QtBot, dialog: ServerDialog, servers: Servers
) -> None:
    assert not dialog.copy_button.isEnabled()
    dialog.switch.click()
    (server,) = servers
    assert server.is_running
    assert not dialog.port_box.isEnabled()
    server.events.ready.emit("http://127.0.0.1:8642")
    qtbot.waitUntil(lambda: dialog.address_edit.text() == "http://127.0.0.1:8642/v1")
    dialog.copy_button.click()
    assert QGuiApplication.clipboard().text() == "http://127.0.0.1:8642/v1"
    dialog.switch.click()
    assert not server.is_running
    assert not dialog.address_edit.text()
    assert dialog.port_box.isEnabled()


def test_a_port_in_use_is_reported_and_the_switch_goes_back(
    qtbot: QtBot, dialog: ServerDialog, servers: Servers
) -> None:
    dialog.switch.click()
    servers[0].events.failed.emit(RequestError("The port is taken.", "Choose another one."))
    qtbot.waitUntil(lambda: "The port is taken." in dialog.note.text())
    assert not dialog.switch.isChecked()
    dialog.switch.click()
    assert len(servers) == 2


def test_events_of_a_stopped_server_change_nothing(
    qtbot: QtBot, dialog: ServerDialog, servers: Servers
) -> None:
    dialog.switch.click()
    server = servers[0]
    server.events.ready.emit("http://127.0.0.1:8642")
    dialog.switch.click()
    QApplication.processEvents()
    assert dialog._switch.status.phase is ServerPhase.OFF


def test_requests_are_listed_without_their_texts(
    qtbot: QtBot, dialog: ServerDialog, servers: Servers
) -> None:
    dialog.switch.click()
    servers[0].events.served.emit(RECORD)
    qtbot.waitUntil(lambda: dialog.requests.rowCount() == 1)
    assert cells(dialog.requests) == [
        "POST /v1/chat/completions",
        "200",
        "1200",
        "64",
        "71.3",
        "0.98",
    ]


def test_only_the_latest_requests_are_listed() -> None:
    model = RequestsModel()
    for _ in range(MOST_REQUESTS + 5):
        model.add(RECORD)
    assert model.rowCount() == MOST_REQUESTS


def test_the_servers_switch_is_remembered_and_closing_the_window_stops_it(
    open_ready: Open, servers: Servers
) -> None:
    window, _ = open_ready(make_server=servers.make)
    assert not servers
    window.pages.open("server")
    assert window.pages.find(ServerDialog) is not None
    window.pages.find(ServerDialog).port_box.setValue(9000)
    window.pages.find(ServerDialog).switch.click()
    assert [server.port for server in servers] == [9000]
    assert window.settings.values.serves
    window.close()
    assert not servers[0].is_running
    assert window.settings.values.serves


def test_another_embedding_model_restarts_a_server_that_is_on(
    open_ready: Open, servers: Servers
) -> None:
    window, _ = open_ready(make_server=servers.make)
    window.settings.set(embedding_model="/models/first")
    assert not servers  # it is off
    window.settings.set(serves=True, server_port=9000.0)
    window.settings.set(embedding_model="/models/second")
    assert [server.port for server in servers] == [9000, 9000]
    assert [server.is_running for server in servers] == [False, True]
    window.close()


def test_a_server_that_cannot_start_says_why(qtbot: QtBot) -> None:
    def make(port: int, events: ServerEvents) -> ScriptedServer:
        raise MissingExtraError("This needs uvicorn.", "Install it.")

    dialog = ServerDialog(switch := ServerSwitch(make))
    qtbot.addWidget(dialog)
    switch.turn_on(8642)
    assert switch.status.phase is ServerPhase.FAILED
    assert dialog.note.text() == "This needs uvicorn. Install it."
    assert not dialog.switch.isChecked()
    switch.turn_off()
    assert switch.status.phase is ServerPhase.OFF
