"""The About dialog."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.about import AboutDialog
from app.window import MainWindow
from tests.app.fakes import FakeEngine, Script


def test_the_header_opens_a_dialog_with_the_notice_of_the_demo_model(
    qtbot: QtBot, open_fake: Callable[..., tuple[MainWindow, FakeEngine]]
) -> None:
    window, _ = open_fake(Script())
    window.page.header.about_action.trigger()
    (dialog,) = window.findChildren(AboutDialog)
    assert dialog.isVisible()
    assert "Built with Llama" in [label.text() for label in dialog.labels]
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(AboutDialog))
