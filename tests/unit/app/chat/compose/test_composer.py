"""The composer with a state of its own: no window, no engine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.compose import file_reader
from app.chat.compose.composer import LONG_TEXT_CHARS, Composer
from app.state.chat import ChatState, Draft
from app.theme.appearance import Appearance
from medusa_core.api import Attachment, read_attachment
from medusa_core.chats.conversation import Conversation
from tests.support.window.requests import begin

NOTES = Attachment("R&D.txt", "text/plain", "one two", 7)


class Composed:
    """A composer, its state, and what it asked for."""

    def __init__(self, qtbot: QtBot, appearance: Appearance) -> None:
        self.state = ChatState()
        self.composer = Composer(self.state, appearance)
        self.requested: list[str] = []
        self.composer.send_requested.connect(self.requested.append)
        self.composer.queue_requested.connect(lambda: self.requested.append("queue"))
        self.composer.stop_requested.connect(lambda: self.requested.append("stop"))
        qtbot.addWidget(self.composer)
        self.composer.resize(600, 200)
        self.composer.show()

    @property
    def text(self) -> str:
        return self.composer.edit.toPlainText()

    def press_enter(self) -> None:
        QTest.keyClick(self.composer.edit, Qt.Key.Key_Return)


@pytest.fixture
def composed(qtbot: QtBot, appearance: Appearance) -> Composed:
    return Composed(qtbot, appearance)


def test_the_text_and_the_draft_are_the_same_whoever_writes(composed: Composed) -> None:
    QTest.keyClicks(composed.composer.edit, "one")
    assert composed.state.draft.text == "one"
    composed.state.write("two\nthree")
    QTest.keyClicks(composed.composer.edit, "!")
    assert composed.text == composed.state.draft.text == "two\nthree!"


def test_nothing_but_blanks_is_sent(composed: Composed) -> None:
    for text in ("", "   ", "\n\n\t"):
        composed.state.write(text)
        assert not composed.composer.button.isEnabled()
        composed.press_enter()
    assert composed.requested == []


def test_the_button_sends_stops_or_is_locked(composed: Composed) -> None:
    composed.state.write("one")
    composed.composer.button.click()
    turn, _ = begin(composed.state)
    composed.composer.button.click()
    composed.press_enter()
    composed.state.end(turn)
    composed.state.lock("The engine has stopped")
    composed.composer.button.click()
    composed.press_enter()
    assert composed.requested == ["one", "stop", "queue"]
    assert composed.composer.button.toolTip() == "The engine has stopped"
    assert composed.text == "one"


def test_shift_enter_starts_a_new_line_and_the_composer_grows(composed: Composed) -> None:
    edit = composed.composer.edit
    QTest.keyClicks(edit, "one")
    height = edit.height()
    QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(edit, "two")
    assert composed.text == "one\ntwo"
    assert edit.height() > height
    composed.state.write("line\n" * 200)
    assert edit.height() < edit.fontMetrics().lineSpacing() * 12
    assert composed.requested == []


def test_enter_that_confirms_an_input_methods_word_sends_nothing(composed: Composed) -> None:
    edit = composed.composer.edit
    QApplication.sendEvent(edit, QInputMethodEvent("ni", []))
    composed.press_enter()
    QTest.keyClick(edit, Qt.Key.Key_Enter)
    assert edit.textCursor().block().layout().preeditAreaText() == "ni"
    assert composed.requested == []
    chosen = QInputMethodEvent()
    chosen.setCommitString("你")
    QApplication.sendEvent(edit, chosen)
    composed.press_enter()
    assert composed.requested == ["你"]


def test_a_chip_can_be_removed_and_shows_an_ampersand_as_it_is(composed: Composed) -> None:
    composed.state.attach(NOTES)
    files = composed.composer.files
    assert files.findChildren(QToolButton)[0].shortcut().isEmpty()
    assert composed.composer.button.isEnabled(), "a file alone can be sent"
    (remove,) = (b for b in files.findChildren(QToolButton) if "Remove" in b.toolTip())
    remove.click()
    assert composed.state.draft == Draft()
    assert not composed.composer.button.isEnabled()


def test_a_long_pasted_text_becomes_a_file_and_can_be_turned_back(composed: Composed) -> None:
    text, data = "word " * LONG_TEXT_CHARS, QMimeData()
    data.setText(text)
    composed.composer.edit.insertFromMimeData(data)
    (attached,) = composed.state.draft.attachments
    assert (composed.text, attached.text) == ("", text)
    composed.composer.files._unpack(attached, _Accepted())  # type: ignore[arg-type]
    assert composed.state.draft == Draft(text)


class _Accepted:
    """A dialog that was agreed to."""

    def accept(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_queued_message_can_be_edited_or_cancelled(is_edited: bool, composed: Composed) -> None:
    begin(composed.state)
    composed.state.write("second")
    composed.state.queue()
    row = composed.composer.queued_row
    assert (composed.text, row.isVisible()) == ("", True)
    (row.edit_button if is_edited else row.cancel_button).click()
    assert (composed.text, row.isVisible()) == ("second" if is_edited else "", False)


def test_only_the_chat_whose_file_is_being_read_waits_for_it(
    qtbot: QtBot, composed: Composed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, composer = composed.state, composed.composer
    first, second, gate = state.conversation, Conversation(), threading.Event()
    state.stored |= {first.session_id, second.session_id}
    path = tmp_path / "notes.py"
    path.write_text("print('hello')\n")

    def read_later(path: Path) -> Attachment:
        assert gate.wait(60)
        return read_attachment(path)

    monkeypatch.setattr(file_reader, "read_attachment", read_later)
    composer.attach([path])
    state.write("With a file")
    assert not composer.button.isEnabled()
    state.show(second)
    state.write("Without a file")
    assert composer.button.isEnabled()
    gate.set()
    qtbot.waitUntil(lambda: not composer.reader.is_reading(first.session_id))
    assert state.draft.attachments == ()
    state.show(first)
    assert composer.button.isEnabled()
    assert [one.name for one in composer.files.attachments] == ["notes.py"]
