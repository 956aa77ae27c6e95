"""The empty chat in a narrow column."""

from pytestqt.qtbot import QtBot

from app.chat.empty_state import EmptyState
from app.theme.appearance import Appearance

LEAST_PX = 218  # of a window of 760 pixels with sidebar and panel


def test_an_empty_chat_never_scrolls_sideways(qtbot: QtBot, appearance: Appearance) -> None:
    empty = EmptyState(appearance)
    qtbot.addWidget(empty)
    empty.show_suggestions(("Write a bedtime story about a small bear.", "Who are you?"))
    assert empty.minimumSizeHint().width() <= LEAST_PX
