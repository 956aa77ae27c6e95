"""Files that go with a message, and messages that wait for an answer."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.compose.attachment_bar import chip_text
from app.window.main_window import MainWindow
from medusa_core.api import Attachment
from medusa_core.messages import Generate
from tests.support.window.driving import ask, errors, user_messages
from tests.support.window.fakes import LONG, Script
from tests.support.window.fixtures import Open
from tests.support.window.history_fixtures import OpenSaved, open_saved  # noqa: F401


def paste(window: MainWindow, data: QMimeData) -> None:
    window.page.composer.edit.insertFromMimeData(data)


def files(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def attach(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    paste(window, files(path))
    qtbot.waitUntil(lambda: not window.page.composer.is_reading, timeout=60_000)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.py"
    path.write_text("print('hello')\n")
    return path


def test_a_pasted_file_is_a_chip_and_the_model_reads_it(
    qtbot: QtBot, open_ready: Open, notes: Path
) -> None:
    window, engine = open_ready()
    composer = window.page.composer
    attach(qtbot, window, notes)
    (attached,) = composer.files.attachments
    assert composer.files.isVisible()
    assert chip_text(attached).startswith("notes.py · ≈ ")
    composer.edit.setPlainText("What does it do?")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    (requested,) = engine.of_kind(Generate)[-1].messages
    assert "notes.py" in requested.text
    assert "print('hello')" in requested.text
    assert requested.text.endswith("What does it do?")
    assert composer.files.attachments == ()
    (shown,) = user_messages(window)
    assert shown.text == "What does it do?"
    qtbot.waitUntil(lambda: shown.is_populated)
    shown.files.findChildren(QToolButton)[0].click()
    view = shown.files.findChild(QPlainTextEdit)
    assert view is not None
    assert view.toPlainText() == "print('hello')\n"


def test_a_file_without_text_says_why(qtbot: QtBot, open_ready: Open, tmp_path: Path) -> None:
    window, _ = open_ready()
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    attach(qtbot, window, path)
    assert window.page.composer.files.attachments == ()
    assert errors(window)


def test_an_unsent_message_is_restored_with_its_files(
    qtbot: QtBot, open_ready: Open, notes: Path
) -> None:
    window, _ = open_ready(Script(prefill_error="Too long."))
    attach(qtbot, window, notes)
    window.page.composer.edit.setPlainText("precious")
    window.page.composer.submit()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.page.composer.edit.toPlainText() == "precious"
    assert [one.name for one in window.page.composer.files.attachments] == ["notes.py"]


def test_a_message_written_during_an_answer_is_sent_after_it(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(Script(answer=LONG), 2)
    engine.gate.clear()
    window.chat.send("first")
    composer = window.page.composer
    for text in ("second", "and third"):
        composer.edit.setPlainText(text)
        QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert composer.edit.toPlainText() == ""
    assert composer.queued_row.isVisible()
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) == 1)
    engine.gate.set()
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) == 2)
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert engine.of_kind(Generate)[-1].messages[-1].text == "second\n\nand third"
    assert not composer.queued_row.isVisible()


def test_files_are_kept_with_the_conversation(
    qtbot: QtBot,
    open_saved: OpenSaved,  # noqa: F811
    notes: Path,
) -> None:
    window, _ = open_saved()
    attach(qtbot, window, notes)
    window.page.composer.submit()  # a file alone
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    window, engine = open_saved()
    assert window.history is not None
    window.history.open_last()
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert "print('hello')" in engine.of_kind(Generate)[-1].messages[0].text
    (shown,) = user_messages(window)
    assert [one.name for one in shown.attachments] == ["notes.py"]


def test_files_of_an_unsent_message_survive_a_crash(
    qtbot: QtBot,
    open_saved: OpenSaved,  # noqa: F811
    notes: Path,
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "first")
    attach(qtbot, window, notes)
    window.page.composer.edit.setPlainText("about this")
    assert window.history is not None
    history, name = window.history.history, window.chat.conversation.session_id
    qtbot.waitUntil(lambda: bool(history.draft_files(name)))
    later, _ = open_saved()
    assert later.history is not None
    (info,) = later.history.history.conversations()
    later.history.open(info)
    assert later.page.composer.edit.toPlainText() == "about this"
    assert [one.text for one in later.page.composer.files.attachments] == [notes.read_text()]
    later.page.composer.submit()
    qtbot.waitUntil(lambda: not later.chat.is_busy)
    kept = later.history.history
    qtbot.waitUntil(lambda: kept.draft_files(name) == ())


def test_failed_and_queued_messages_are_restored_in_the_order_written(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready(Script(prefill_error="Too long."))
    window.chat.send("first")
    window.page.composer.edit.setPlainText("second")
    window.page.composer.submit()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.page.composer.edit.toPlainText() == "first\nsecond"


def test_a_cancelled_message_is_not_a_draft_any_more(
    qtbot: QtBot,
    open_saved: OpenSaved,  # noqa: F811
) -> None:
    window, engine = open_saved(Script(answer=LONG))
    engine.gate.clear()
    window.chat.send("first")
    assert window.history is not None
    history, name = window.history.history, window.chat.conversation.session_id
    window.page.composer.edit.setPlainText("second")
    window.page.composer.submit()
    qtbot.waitUntil(lambda: history.draft(name) == "second")
    window.page.composer.queued_row.cancel_button.click()
    qtbot.waitUntil(lambda: history.draft(name) == "")
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)


def test_files_dragged_over_the_text_reach_the_window_which_opens_traces(
    qtbot: QtBot, open_fake: Open, notes: Path
) -> None:
    window, _ = open_fake()
    dragged = files(notes)
    event = QDragEnterEvent(
        *(QPoint(3, 3), Qt.DropAction.CopyAction, dragged),
        *(Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier),
    )
    window.page.composer.edit.dragEnterEvent(event)
    assert not event.isAccepted()


def test_a_closed_window_stops_reading_files(qtbot: QtBot, open_fake: Open, notes: Path) -> None:
    window, _ = open_fake()
    reader = window.page.composer.reader
    read: list[Attachment] = []
    reader.read.connect(lambda _, attachment: read.append(attachment))
    window.close()
    window.page.composer.attach([notes])
    qtbot.waitUntil(lambda: not window.page.composer.is_reading, timeout=60_000)
    assert read == []
