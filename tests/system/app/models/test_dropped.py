"""A model that is dropped on a window: it is asked whether to load it."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDragEnterEvent
from PySide6.QtWidgets import QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.widgets.dropping import is_model
from app.window.main_window import MainWindow
from medusa_core.api import Library, demo_model
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import LoadModel
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import write_tiny
from tests.support.window.driving import errors
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import SPEC, Run
from tests.support.window.looks import dropped
from tests.support.window.managing import until, wait_for_tasks


def answer(monkeypatch: pytest.MonkeyPatch, button: QMessageBox.StandardButton) -> list[str]:
    """Answer every question box with a button, and return the questions."""
    requested: list[str] = []

    def reported(box: QMessageBox) -> QMessageBox.StandardButton:
        requested.append(box.text())
        return button

    monkeypatch.setattr(QMessageBox, "exec", reported)
    return requested


def test_model_files_and_folders_are_recognised(tmp_path: Path) -> None:
    assert is_model(tmp_path / "Some.GGUF")
    assert is_model(demo_model()[0])
    assert not is_model(tmp_path)
    assert not is_model(tmp_path / "notes.txt")


def test_dropped_files_are_copied_and_never_moved(
    qtbot: QtBot, open_fake: Open, dialog: LibraryDialog, tmp_path: Path
) -> None:
    window, _ = open_fake()
    drop = dropped(tmp_path / "notes.txt", tmp_path / "a.gguf")
    mouse, key = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    copy, move, link = (
        Qt.DropAction.CopyAction,
        Qt.DropAction.MoveAction,
        Qt.DropAction.LinkAction,
    )
    for one in (window, dialog):
        for offered, taken in ((copy | move | link, copy), (move | link, link), (move, None)):
            event = QDragEnterEvent(QPoint(5, 5), offered, drop.mimeData(), mouse, key)
            event.ignore()
            one.dragEnterEvent(event)
            assert event.isAccepted() == (taken is not None)
            assert taken is None or event.dropAction() == taken


def test_a_model_dropped_on_the_chat_is_imported_and_loaded_if_wanted(
    open_ready: Open,
    run: Run,
    library: Library,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window, engine = open_ready(open_library=lambda: library)
    model = write_tiny(tmp_path / "tiny", SPEC)
    no, yes = QMessageBox.StandardButton.No, QMessageBox.StandardButton.Yes

    async def drop(button: QMessageBox.StandardButton, path: Path) -> list[str]:
        requested = answer(monkeypatch, button)
        window.dropEvent(dropped(path))
        await asyncio.wait_for(window.models.tasks.wait(), 20)
        return requested

    async def work() -> None:
        assert await drop(no, model) == ["This is a model. Import and load it?"]
        assert (await library.installed(), len(engine.of_kind(LoadModel))) == ((), 1)
        await drop(yes, model)
        assert [one.path for one in await library.installed()] == [model]
        assert [one.model_dir for one in loads(window)] == [model]
        (tmp_path / "cut.gguf").write_bytes(b"GGUF")
        await drop(yes, tmp_path / "cut.gguf")
        assert len(errors(window)) == 1

    run(work)
    assert [load.model_dir for load in engine.of_kind(LoadModel)[1:]] == [model]  # type: ignore[attr-defined]
    assert not window.page.composer.files.attachments


def test_a_file_that_is_opened_by_the_menu_is_loaded_without_the_model_manager(
    open_ready: Open,
    run: Run,
    library: Library,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window, _ = open_ready(open_library=lambda: library)
    file = write_as_gguf(demo_model()[0], tmp_path / "pebble.gguf", "q4_0")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))

    async def work() -> None:
        action = window.commands.action("open-gguf")
        action.trigger()
        await asyncio.wait_for(window.models.tasks.wait(), 20)

    run(work)
    assert [one.model_dir for one in loads(window)] == [file]
    assert window.pages.find(LibraryDialog) is None


def test_a_model_that_is_attached_is_offered_to_be_loaded_and_texts_beside_it_are_read(
    qtbot: QtBot, open_ready: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, engine = open_ready()
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    (tmp_path / "notes.txt").write_text("Buy bread.")
    files = [str(tmp_path / "notes.txt"), str(tmp_path / "a.gguf")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: (files, ""))
    requested = answer(monkeypatch, QMessageBox.StandardButton.No)
    window.page.composer.attach_button.click()
    qtbot.waitUntil(lambda: bool(window.page.composer.files.attachments))
    assert requested == ["This is a model. Import and load it?"]
    assert [one.name for one in window.page.composer.files.attachments] == ["notes.txt"]
    assert not errors(window)
    assert len(engine.of_kind(LoadModel)) == 1


def test_the_reason_why_a_file_isnt_attached_belongs_to_its_conversation(
    qtbot: QtBot, open_ready: Open, tmp_path: Path
) -> None:
    window, _ = open_ready()
    (tmp_path / "a.bin").write_bytes(bytes(range(256)))
    window.page.composer.attach([tmp_path / "a.bin"])
    qtbot.waitUntil(lambda: bool(errors(window)))
    window.chat.new_chat()
    assert not errors(window)


def loads(window: MainWindow) -> list[ModelChoice]:
    return [window.loaded_model.choice]


def test_a_model_dropped_on_models_is_chosen_and_loaded_once_it_is_read(
    run: Run, dialog: LibraryDialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[ModelChoice] = []
    dialog.load_requested.connect(wanted.append)
    answer(monkeypatch, QMessageBox.StandardButton.Yes)
    model = write_tiny(tmp_path / "tiny", SPEC)

    async def work() -> None:
        dialog.dropEvent(dropped(tmp_path / "notes.txt", model))
        assert dialog.tabs.currentWidget() is dialog.installed
        await until(lambda: wanted)
        await wait_for_tasks(dialog)

    run(work)
    assert [choice.model_dir for choice in wanted] == [model]
