"""Other machines' models in the window: connected, chosen, talked with, and out of reach."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from app.models import machines_tab
from app.models.library_dialog import LibraryDialog
from app.settings.preferences import load_preferences
from app.theme.appearance import Appearance
from app.window.main_window import MainWindow
from medusa_core.api import Endpoint, Endpoints, EventSink, Library
from medusa_core.loading.choice import as_json, from_json, remote_choice
from medusa_core.loading.state import Phase
from medusa_core.messages import EndpointModel, LoadRemote, Unload
from medusa_core.remote.remote_engine import RemoteEngine
from medusa_core.remote.router import EngineRouter
from tests.support.remote.fake_endpoint import ANSWER, FakeEndpoint, Reply, as_reply, delta, finish
from tests.support.window.driving import ask, errors, figure_texts
from tests.support.window.fakes import FakeEngine
from tests.support.window.fixtures import Open, OpenWindow
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import until, wait_for_tasks

KEY = "sk-of-the-lab-0123456789"


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as running:
        yield running


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the keyring of the user who runs the tests."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def start_routed(on_event: EventSink) -> EngineRouter:
    """Start a scripted engine for local models, and the real one for remote models."""
    return EngineRouter(on_event, FakeEngine().start, RemoteEngine)


def connected(tmp_path: Path, endpoint: FakeEndpoint) -> Endpoint:
    """A machine that was connected in an earlier run."""
    lab = Endpoint(endpoint.url, "the lab", models=("small", "other"))
    Endpoints(tmp_path).add(lab)
    return lab


def remote_menu(window: MainWindow) -> QMenu:
    """The header's list of another machine's models."""
    (action,) = [a for a in window.page.header.model_menu.actions() if a.text() == "On the lab"]
    menu = action.menu()
    assert isinstance(menu, QMenu)
    return menu


def open_remote(open_window: OpenWindow, qtbot: QtBot, **more: Any) -> MainWindow:
    """A window in which the lab's first model was chosen in the header."""
    window = open_window(start_routed, **more)
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)
    remote_menu(window).actions()[1].trigger()
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.READY)
    assert window.loaded_model.choice.name == "small"
    return window


def test_a_remote_model_is_remembered(tmp_path: Path) -> None:
    choice = remote_choice(EndpointModel("http://host/v1", "small", "the lab"))
    assert from_json(as_json(choice)) == choice
    assert choice.key == "http://host/v1 small"


def test_a_machine_is_connected_and_its_model_answers(
    run: Run, open_window: OpenWindow, library: Library, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.key = KEY
    window = open_window(start_routed, open_library=lambda: library)

    async def work() -> None:
        await until(lambda: window.loaded_model.status.calibrated is not None)
        window.pages.open("models")
        dialog = window.pages.find(LibraryDialog)
        assert dialog is not None
        tab = dialog.machines
        dialog.tabs.setCurrentWidget(tab)
        assert not tab.connect_button.isEnabled()
        tab.address_edit.setText(endpoint.url)
        tab.name_edit.setText("the lab")
        tab.connect_button.click()
        await until(lambda: not tab.tasks.is_running)
        assert "wants a key" in tab.note.text()
        assert tab.table.rowCount() == 0
        tab.key_edit.setText(KEY)
        tab.connect_button.click()
        await until(lambda: tab.table.rowCount() == 1 and not tab.tasks.is_running)
        assert "the lab answers, and offers 2 models." in tab.note.text()
        assert tab.key_edit.text() == ""
        shown = [tab.models.item(row, 0) for row in range(tab.models.rowCount())]
        assert [item.text() for item in shown if item is not None] == ["small", "other"]
        assert [a.text() for a in remote_menu(window).actions()] == ["other", "small"]
        tab.use_button.click()
        await until(lambda: window.loaded_model.status.phase is Phase.READY)
        assert window.page.header.model_button.text() == "small · the lab"
        window.chat.send("Count.")
        await until(lambda: not window.chat.is_busy)
        window.pages.open("models")
        endpoint.models = as_reply({"data": [{"id": "new"}]})
        tab.test_button.click()
        await until(lambda: not tab.tasks.is_running)
        assert [a.text() for a in remote_menu(window).actions()] == ["new"]
        await wait_for_tasks(dialog)
        dialog.close()
        await library.downloads.close()

    run(work)
    assert window.chat.answers[-1].document.text == "One two three."
    assert endpoint.asked[-2].headers["authorization"] == f"Bearer {KEY}"
    kept = load_preferences(tmp_path).model
    assert kept.remote == EndpointModel(endpoint.url, "small", "the lab")
    written = {p.name: p.read_text("latin-1") for p in tmp_path.rglob("*") if p.is_file()}
    assert [name for name, text in written.items() if KEY in text] == ["keys.json"]


def test_unknown_figures_of_a_remote_answer_are_not_shown(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    connected(tmp_path, endpoint)
    window = open_remote(open_window, qtbot)
    page = window.page
    answer = ask(qtbot, window, "Count.")
    assert answer.content.text == "One two three."
    shown = figure_texts(answer)
    assert shown[:2] == ("100 tokens/s", "67% of drafts accepted")
    assert shown[2].endswith("to first token")
    assert shown[3] == "end of answer"
    assert page.strip.isHidden()
    assert page.header.drafter_box.isHidden()
    assert page.header.state_label.text() == "on another machine: the lab · reads 4,096 tokens"
    assert page.context_label.text() == ""
    assert not window.insight.recordings.tracks
    menu = answer.menu_at(1)
    lacking = {action.text() for action in menu.actions() if not action.isEnabled()}
    assert {"Reroll from here", "Show this step (Ctrl+click, Enter)"} <= lacking
    for panel in (window.insight.open_tree, window.insight.open_steps):
        assert panel().isVisible()
    window.loaded_model.load(window.models.choices[0])
    qtbot.waitUntil(lambda: not page.strip.isHidden())
    assert not page.header.drafter_box.isHidden()


def test_without_figures_of_the_server_none_are_invented(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.answer = Reply((delta(reasoning="Hm."), delta(content="Two."), finish()))
    connected(tmp_path, endpoint)
    answer = ask(qtbot, open_remote(open_window, qtbot), "1 + 1?")
    assert [text for text in figure_texts(answer) if "tokens/s" in text or "%" in text] == []
    assert answer.fold is not None
    assert answer.document.text.strip() == "Two."


def test_an_interrupted_remote_answer_keeps_its_text_and_says_why(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    connected(tmp_path, endpoint)
    window = open_remote(open_window, qtbot)
    endpoint.answer = Reply((delta(content="One"), delta(content=" two")), is_cut=True)
    answer = ask(qtbot, window, "Count.")
    assert answer.content.text == "One two"
    assert answer.answer.is_cut
    (card,) = errors(window)
    assert card.message.startswith("The answer of the lab broke off")
    endpoint.answer = Reply(ANSWER)
    answer.row.continue_button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers[-1].document.text == "One twoOne two three."


def test_stopping_ends_the_remote_request(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.answer = Reply((delta(content="One"), *(0.05, delta(content=" more")) * 200))
    connected(tmp_path, endpoint)
    window = open_remote(open_window, qtbot)
    window.chat.send("Count.")
    qtbot.waitUntil(lambda: "more" in window.chat.answers[-1].document.text)
    window.chat.stop()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    qtbot.waitUntil(lambda: endpoint.num_left > 0)
    assert "stopped" in figure_texts(window.chat.answers[-1])


def test_if_a_machine_is_unreachable_the_previous_model_answers_and_the_card_says_why(
    open_window: OpenWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    with FakeEndpoint() as gone:
        pass
    connected(tmp_path, gone)
    window = open_window(start_routed)
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)
    remote_menu(window).actions()[0].trigger()
    qtbot.waitUntil(lambda: bool(errors(window)))
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.READY)
    assert errors(window)[0].message == "the lab can't be reached: nothing answers there."
    assert window.loaded_model.choice.name == "Llama-Pebble"
    assert ask(qtbot, window, "Hello").content.text


def test_offline_mode_suspends_a_remote_model_and_sends_nothing(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    connected(tmp_path, endpoint)
    window = open_remote(open_window, qtbot)
    num_asked = len(endpoint.asked)
    window.settings.set(is_offline=True)
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.ASLEEP)
    window.chat.send("Hello?")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert any("Offline mode is on" in card.message for card in errors(window))
    assert len(endpoint.asked) == num_asked
    window.settings.set(is_offline=False)
    window.loaded_model.load()
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.READY)
    assert ask(qtbot, window, "Hello?").content.text


def test_a_removed_machine_answers_no_more(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    lab = connected(tmp_path, endpoint)
    window = open_remote(open_window, qtbot)
    window.models.endpoints.remove(lab.url)
    window.models.list_endpoints()
    qtbot.waitUntil(lambda: window.loaded_model.choice.name == "Llama-Pebble")
    texts = [action.text() for action in window.page.header.model_menu.actions()]
    assert "On the lab" not in texts


def test_nothing_is_sent_before_a_remote_model_is_chosen(
    open_ready: Open, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    connected(tmp_path, endpoint)
    window, engine = open_ready()
    window.page.header.model_menu.aboutToShow.emit()
    assert endpoint.asked == []
    assert not engine.of_kind(LoadRemote)
    assert not engine.of_kind(Unload)


def test_an_unencrypted_connection_is_confirmed_before_anything_is_sent(
    run: Run, qtbot: QtBot, appearance: Appearance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[str] = []

    def decline(_parent: object, question: str, _more: str) -> bool:
        questions.append(question)
        return False

    monkeypatch.setattr(machines_tab, "confirms", decline)

    async def work() -> None:
        tab = machines_tab.MachinesTab(Endpoints(tmp_path), appearance, lambda: False)
        qtbot.addWidget(tab)
        tab.address_edit.setText("http://192.0.2.1:8080")
        tab.key_edit.setText(KEY)
        tab.connect_button.click()
        assert not tab.tasks.is_running
        tab.address_edit.setText("no address")
        tab.connect_button.click()
        await until(lambda: not tab.tasks.is_running)
        assert "is no address of a server" in tab.note.text()

    run(work)
    assert questions == ["Connect without encryption?"]


def test_a_machine_can_be_removed_with_its_key(
    run: Run,
    qtbot: QtBot,
    appearance: Appearance,
    endpoint: FakeEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machines_tab, "confirms", lambda *_: True)

    async def work() -> None:
        tab = machines_tab.MachinesTab(Endpoints(tmp_path), appearance, lambda: False)
        qtbot.addWidget(tab)
        tab.address_edit.setText(endpoint.url)
        tab.key_edit.setText(KEY)
        tab.connect_button.click()
        await until(lambda: tab.table.rowCount() == 1 and not tab.tasks.is_running)
        assert (tmp_path / "keys.json").exists()
        tab.remove_button.click()
        await until(lambda: tab.table.rowCount() == 0 and not tab.tasks.is_running)
        assert not (tmp_path / "keys.json").exists()
        assert not tab.use_button.isEnabled()

    run(work)


def test_comparing_and_the_equilibrium_say_that_they_need_a_local_model(
    open_window: OpenWindow, qtbot: QtBot, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    connected(tmp_path, endpoint)
    window = open_remote(open_window, qtbot)
    ask(qtbot, window, "Count.")
    window.commands.action("compare").trigger()
    assert window.insight.compare is None
    assert "no modes to compare" in errors(window)[0].message
    panel = window.insight.open_equilibrium()
    assert len(errors(window)) == 1
    panel.verify_conversation()
    qtbot.waitUntil(lambda: len(errors(window)) == 2)
    assert "of another machine" in errors(window)[1].message
    assert len(endpoint.bodies) == 1
