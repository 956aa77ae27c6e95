"""The page of documents: collections, their files, progress and the embedding model."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from pytestqt.qtbot import QtBot

from app.documents import documents_dialog
from app.documents.documents_dialog import DocumentsDialog
from app.documents.words import summary
from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.state.documents import DocumentsState
from app.state.library import LibraryState
from app.theme.appearance import Appearance
from medusa_core.api import CollectionInfo, Collections, IndexProgress
from medusa_core.loading.choice import demo_choice
from tests.support.window.accessibility import faults
from tests.support.window.fakes import FakeEngine
from tests.support.window.library_fixtures import Run

Open = Callable[[], Awaitable[DocumentsDialog]]


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, while Qt and the loop go on."""
    while not condition():
        await asyncio.sleep(0.005)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "birds"
    made.mkdir()
    (made / "heron.txt").write_text("Herons wait.")
    (made / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    return made


@pytest.fixture
def open_dialog(qtbot: QtBot, appearance: Appearance, tmp_path: Path) -> Open:
    """Open the page on a folder of its own."""

    async def open_one() -> DocumentsDialog:
        bridge = EngineBridge(FakeEngine().start)
        state = DocumentsState(tmp_path / "index", bridge)
        library = LibraryState(LoadedModel(bridge, demo_choice()), None)
        dialog = DocumentsDialog(state, library, appearance)
        dialog.destroyed.connect(state.close)
        qtbot.addWidget(dialog)
        dialog.show()
        dialog.refresh()
        await state.tasks.wait()
        return dialog

    return open_one


def cells(dialog: DocumentsDialog) -> list[tuple[str, str]]:
    """Return name and state of each document."""
    table = dialog.table
    found = []
    for row in range(table.rowCount()):
        name, state = table.item(row, 0), table.item(row, 1)
        assert name is not None
        assert state is not None
        found.append((name.text(), state.text()))
    return found


def test_a_dropped_folder_becomes_a_collection_that_is_read(
    run: Run, open_dialog: Open, folder: Path
) -> None:
    async def work() -> None:
        dialog = await open_dialog()
        assert "drop files" in dialog.summary_label.text()
        assert not dialog.update_button.isEnabled()
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(folder))])
        where = (Qt.DropAction.CopyAction, data)
        drag = QDragEnterEvent(
            QPoint(5, 5), *where, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )
        dialog.dragEnterEvent(drag)
        assert drag.isAccepted()
        dialog.dropEvent(
            QDropEvent(
                QPoint(5, 5), *where, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
            )
        )
        state = dialog._documents
        await state.tasks.wait()
        chosen = dialog.chosen
        assert chosen is not None
        assert (chosen.name, chosen.paths, chosen.num_documents) == ("birds", (folder,), 1)
        assert "Documents: 1 · passages: 1" in dialog.summary_label.text()
        assert "words alone" in dialog.summary_label.text()
        (broken, heron) = cells(dialog)
        assert heron == ("heron.txt", "read")
        assert broken[0] == "broken.pdf"
        assert broken[1].startswith("can't be read: ")
        assert not dialog.progress.isVisible()
        # What changes is read again, and what is taken out is erased.
        (folder / "stork.txt").write_text("Storks clap.")
        dialog.update_button.click()
        assert dialog.stop_button.isEnabled()
        await state.tasks.wait()
        assert [name for name, _ in cells(dialog)] == ["broken.pdf", "heron.txt", "stork.txt"]
        dialog.roots.setCurrentRow(0)
        dialog.root_button.click()
        await state.tasks.wait()
        assert cells(dialog) == []
        assert dialog.roots.count() == 0
        assert faults(dialog) == []

    run(work)


def test_collections_are_made_renamed_and_removed_if_the_user_agrees(
    run: Run, open_dialog: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["Manuals", "Handbooks"])
    monkeypatch.setattr(documents_dialog, "ask_for_text", lambda *_: next(answers))
    agrees = [False, True]
    monkeypatch.setattr(documents_dialog, "confirms", lambda *_: agrees.pop(0))

    async def work() -> None:
        dialog = await open_dialog()
        state = dialog._documents

        async def press(button: str) -> list[str]:
            getattr(dialog, button).click()
            await state.tasks.wait()
            return [one.name for one in state.collections]

        assert await press("new_button") == ["Manuals"]
        assert await press("rename_button") == ["Handbooks"]
        assert dialog.collections.currentItem().text() == "Handbooks"
        assert await press("remove_button") == ["Handbooks"]
        assert await press("remove_button") == []
        assert dialog.chosen is None
        assert not dialog.remove_button.isEnabled()

    run(work)


def test_reading_can_be_stopped_and_shows_its_progress(
    run: Run, open_dialog: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_slowly(
        _self: object, _id: str, report: object, is_stopped: object, *_: object, **__: object
    ) -> None:
        assert callable(report)
        assert callable(is_stopped)
        report(IndexProgress(3, 12, "heron.txt", False))
        while not is_stopped():
            pass

    monkeypatch.setattr(Collections, "update", read_slowly)

    async def work() -> None:
        dialog = await open_dialog()
        dialog.add([folder])
        await until(lambda: dialog.progress.maximum() == 12)
        assert dialog.progress.isVisible()
        assert dialog.progress_label.text() == "3 of 12 files read · heron.txt"
        assert dialog.stop_button.isEnabled()
        dialog.stop_button.click()
        await dialog._documents.tasks.wait()
        assert not dialog.progress.isVisible()
        assert not dialog.stop_button.isEnabled()

    run(work)


def test_an_error_is_said_in_the_dialog(run: Run, open_dialog: Open, tmp_path: Path) -> None:
    async def work() -> None:
        dialog = await open_dialog()
        dialog.add([tmp_path / "missing"])
        await dialog._documents.tasks.wait()
        assert "missing can't be added" in dialog.problem_label.text()
        assert dialog.problem_label.isVisible()

    run(work)


def test_the_embedding_model_is_chosen_or_none(
    run: Run, open_dialog: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(documents_dialog, "choose_files", lambda *_: (tmp_path / "a.gguf",))

    async def work() -> None:
        dialog = await open_dialog()
        chosen: list[str] = []
        dialog.model_chosen.connect(chosen.append)
        box = dialog.model_box
        assert [box.itemText(i) for i in range(box.count())] == [
            "None: find by words alone",
            "Another file…",
        ]
        dialog.model_chosen.connect(
            lambda path: setattr(dialog._documents, "embedding_model", Path(path or "/none"))
        )
        box.activated.emit(0)
        box.setCurrentIndex(box.count() - 1)
        box.activated.emit(box.count() - 1)
        assert chosen == ["", str(tmp_path / "a.gguf")]
        assert box.currentText() == "a.gguf"

    run(work)


def test_the_summary_says_how_passages_are_found_now() -> None:
    info = CollectionInfo("id", "Birds", (), 1, 4, 900, "mini", 4)
    assert "4 of them by meaning (mini)" in summary(info, Path("/models/mini"))
    assert "by words alone" in summary(info, None)
    assert "by words alone" in summary(info, Path("/models/other"))
