"""The board of errors without a window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.error_board import MOST_EM, ErrorBoard
from app.theme.appearance import Appearance


@pytest.fixture
def board(qtbot: QtBot, appearance: Appearance) -> Iterator[ErrorBoard]:
    page = QWidget()
    column, board = QVBoxLayout(page), ErrorBoard(appearance)
    column.addStretch(1)
    column.addWidget(board)
    qtbot.addWidget(page)
    page.resize(700, 900)
    page.show()
    yield board
    page.close()


def test_many_errors_leave_room_for_the_conversation(
    qtbot: QtBot, board: ErrorBoard, appearance: Appearance
) -> None:
    for number in range(12):
        board.show_error(f"Number {number} broke.", "It says what to do about it. " * 6)
    assert board.height() <= appearance.scale.px(MOST_EM)
    newest = board.cards[-1]
    qtbot.waitUntil(lambda: not newest.visibleRegion().isEmpty())
    for card in list(board.cards):
        card.dismissed.emit()
    assert not board.isVisible()


def test_the_same_error_again_is_one_card(board: ErrorBoard) -> None:
    for _ in range(3):
        board.show_error("The disk is read-only.", "Choose another folder.")
    board.show_error("Another.", "")
    assert [card.message for card in board.cards] == ["The disk is read-only.", "Another."]
