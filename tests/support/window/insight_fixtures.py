"""A window with an answer."""

import pytest
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.window.main_window import MainWindow
from tests.support.window.driving import ask, wait_ready
from tests.support.window.fixtures import Open


@pytest.fixture
def answered(qtbot: QtBot, open_fake: Open) -> tuple[MainWindow, AnswerMessage]:
    """A window with one answer."""
    window, _ = open_fake()
    wait_ready(qtbot, window)
    return window, ask(qtbot, window, "Hello")
