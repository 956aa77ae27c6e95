"""A training whose dialog is closed is shown in the header of the window."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.widgets.job_button import JobButton
from medusa_core.api import Library, places
from tests.support.jobs import FakeCommand, commands, tell
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import wait_for_tasks

__all__ = ["commands"]


def test_the_header_shows_a_training_behind_a_closed_dialog(
    qtbot: QtBot,
    run: Run,
    open_ready: Open,
    library: Library,
    tmp_path: Path,
    commands: list[FakeCommand],
) -> None:
    window, _ = open_ready(open_library=lambda: library, places=places(tmp_path))

    async def work() -> None:
        window.pages.open("models")
        assert window.pages.find(LibraryDialog) is not None
        await wait_for_tasks(window.pages.find(LibraryDialog))

    run(work)
    models = window.pages.find(LibraryDialog)
    assert models is not None
    dialog = models.training
    assert dialog is not None
    (button,) = window.page.header.findChildren(JobButton)
    assert button.isHidden()
    dialog.offer("org/tiny", "/models/tiny", "q4_0", "cpu")
    dialog.show()
    dialog.start_button.click()
    assert dialog.run is not None
    tell(dialog.run, stage="states", done=1, of=4, seconds_left=30.0)
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isHidden()
    models.close()
    qtbot.waitUntil(lambda: button.text() == "Training 25%")
    assert button.isVisible()
    assert "Computing the model's states · 30 s left" in button.accessibleDescription()
    button.click()
    assert dialog.isVisible()
    commands[0].code = 0
    tell(dialog.run, stage="done", done=1, of=1)
    qtbot.waitUntil(button.isHidden)
