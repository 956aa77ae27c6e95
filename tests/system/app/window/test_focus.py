"""What is typed goes to the message, unless one writes elsewhere."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from medusa_core.api import places
from tests.support.window.fixtures import Open


def edit_of(window: MainWindow) -> object:
    return window.page.composer.edit


def test_a_window_that_opens_with_a_panel_begins_in_the_message(
    qtbot: QtBot, open_fake: Open, tmp_path: Path
) -> None:
    window, _ = open_fake(places=places(tmp_path))
    window.insight.open_tree()
    assert window.focusWidget() is not edit_of(window), "who opens a panel looks at it"
    assert window._state is not None
    window._state.save()
    window.restore()
    assert window.focusWidget() is edit_of(window)


def test_after_loading_a_model_the_message_field_has_the_focus(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    window.page.header.drafter_box.setFocus()
    with qtbot.waitSignal(window.loaded_model.chosen):
        window.loaded_model.load()
    assert window.focusWidget() is edit_of(window)
    window.page.settings_panel.show()
    window.page.settings_panel.system_edit.setFocus()
    with qtbot.waitSignal(window.loaded_model.chosen):
        window.loaded_model.load()
    assert window.focusWidget() is window.page.settings_panel.system_edit, "one writes there"


def test_lists_and_panels_dont_swallow_typed_text(open_ready: Open) -> None:
    window, _ = open_ready()
    box: QComboBox = window.page.header.drafter_box
    chosen = box.currentIndex()
    box.setFocus()
    QTest.keyClicks(box, "N")
    assert box.currentIndex() == chosen
    assert window.page.composer.edit.toPlainText() == "N"
    window.insight.open_tree()
    assert window.insight.tree is not None
    follow = window.insight.tree.transport.follow_box
    follow.setFocus()
    QTest.keyClicks(follow, "o")
    assert window.page.composer.edit.toPlainText() == "No"
    follow.setFocus()
    QTest.keyClick(follow, Qt.Key.Key_Space)
    assert window.page.composer.edit.toPlainText() == "No"
