"""Drafts learn from conversations that are kept, and what they learned goes with them."""

import asyncio
from array import array
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from medusa_core.api import History
from medusa_core.messages import Generate
from medusa_core.models.datastore.folder import store_of
from tests.support.window.driving import ask, errors, wait_ready
from tests.support.window.fixtures import Open
from tests.support.window.history_fixtures import OpenSaved, choose

SECRET = array("i", range(700_000, 700_040))


def update_datastore(folder: Path, window: MainWindow, model: str = "model") -> str:
    """Learn from the shown conversation as a model, and return the conversation's name."""
    name = window.chat.conversation.session_id
    with closing(store_of(folder, model)) as store:
        store.add(name, 0, SECRET)
    assert SECRET.tobytes() in left_in(folder)
    return name


def left_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("*") if file.is_file())


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    """Return the folder of learned answers."""
    return tmp_path / "learned"


def test_answers_of_stored_conversations_are_learned_and_others_arent(
    qtbot: QtBot, open_saved: OpenSaved, open_fake: Open
) -> None:
    window, engine = open_saved()
    ask(qtbot, window, "one")
    assert [one.updates_datastore for one in engine.of_kind(Generate)] == [True]
    window, engine = open_fake()  # it keeps nothing
    wait_ready(qtbot, window)
    ask(qtbot, window, "one")
    assert [one.updates_datastore for one in engine.of_kind(Generate)] == [False]


def test_a_conversation_in_the_trash_is_unlearned(
    qtbot: QtBot, open_saved: OpenSaved, learned: Path
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    for model in ("model", "another"):
        update_datastore(learned, window, model)
    choose(window, "one", "Move to trash")
    assert SECRET.tobytes() not in left_in(learned)


def test_emptying_the_trash_unlearns_what_was_added_meanwhile(
    qtbot: QtBot, open_saved: OpenSaved, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QMessageBox, "exec", lambda _: QMessageBox.StandardButton.Yes)
    window, _ = open_saved()
    ask(qtbot, window, "one")
    name = window.chat.conversation.session_id
    choose(window, "one", "Move to trash")
    with closing(store_of(learned, "model")) as store:
        store.add(name, 0, SECRET)
    assert window.history is not None
    window.sidebar.trash_button.click()
    window.history._menu.empty_trash()
    assert window.history.history.conversations(in_trash=True) == ()
    assert SECRET.tobytes() not in left_in(learned)


def test_the_switch_stops_learning_and_deletes_what_was_learned(
    qtbot: QtBot, open_saved: OpenSaved, learned: Path
) -> None:
    window, engine = open_saved()
    ask(qtbot, window, "one")
    update_datastore(learned, window)
    window.settings.set(learns=False)
    assert SECRET.tobytes() not in left_in(learned)
    ask(qtbot, window, "two")
    window.settings.set(learns=True)
    ask(qtbot, window, "three")
    assert [one.updates_datastore for one in engine.of_kind(Generate)] == [True, False, True]


def test_the_next_start_unlearns_deleted_conversations(
    qtbot: QtBot, open_saved: OpenSaved, learned: Path, tmp_path: Path
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    kept = array("i", range(800_000, 800_040))
    with closing(store_of(learned, "model")) as store:
        store.add(window.chat.conversation.session_id, 0, kept)
        store.add("gone before the program could tell", 0, SECRET)
    window, _ = open_saved()
    assert window.learned is not None
    asyncio.run(window.learned._tidy())
    assert SECRET.tobytes() not in left_in(learned)
    assert kept.tobytes() in left_in(learned)
    window.close()
    for file in tmp_path.glob("history.db*"):
        file.unlink()
    History(tmp_path / "history.db").close()
    window, _ = open_saved()
    assert window.learned is not None
    asyncio.run(window.learned._tidy())
    assert kept.tobytes() not in left_in(learned)


def test_a_failure_to_unlearn_is_reported(
    qtbot: QtBot, open_saved: OpenSaved, learned: Path
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    (learned / "model.db").mkdir(parents=True)
    choose(window, "one", "Move to trash")
    (card,) = errors(window)
    assert "model.db" in card.message
    assert card.hint
