"""Drives a window as a user does."""

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.error_card import ErrorCard
from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.message_widgets import UserMessage
from app.window.main_window import MainWindow
from tests.support.window.engine_events import ALL_DRAFTERS

TIMEOUT_MS = 240_000  # a real model on a machine that is busy with others


def wait_ready(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until the model is loaded and measured."""
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None, timeout=TIMEOUT_MS)


def ask(qtbot: QtBot, window: MainWindow, text: str) -> AnswerMessage:
    """Type a prompt, press Enter, and wait for the end of its answer."""
    QTest.keyClicks(window.page.composer.edit, text)
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    assert window.chat.is_busy
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
    return window.chat.answers[-1]


def show_all_settings(window: MainWindow) -> None:
    """Open the settings of the chat, with a rule and a drafter that have settings of their own."""
    window.page.show_panel(True)
    panel, loaded = window.page.settings_panel, window.loaded_model.status.loaded
    assert loaded is not None
    panel.offer(replace(loaded, drafters=ALL_DRAFTERS))
    panel.choose_rule("typical")
    panel.choose_drafter("lookahead")


def user_messages(window: MainWindow) -> list[UserMessage]:
    """Return the shown user messages, the oldest first."""
    return [m for m in window.page.conversation.messages if isinstance(m, UserMessage)]


def errors(window: MainWindow) -> list[ErrorCard]:
    """Return the error messages of the chat."""
    return list(window.page.errors.cards)


def figure_texts(answer: AnswerMessage) -> tuple[str, ...]:
    """Return the figures below an answer, without separators."""
    shown = (label for label in answer.row._labels if not label.isHidden())
    return tuple(label.text().removeprefix("· ") for label in shown)
