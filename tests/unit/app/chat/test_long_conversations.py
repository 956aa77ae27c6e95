"""Long conversations are laid out where they are seen."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from pytestqt.qtbot import QtBot

from app.chat.conversation_view import ConversationView
from app.chat.find.find_bar import FindBar
from app.chat.find.finder import Finder
from app.chat.turn_list import TurnList
from app.state.chat import ChatState
from app.theme.appearance import Appearance
from tests.benchmarks.scroll_speed import long_conversation

Shown = tuple[ConversationView, TurnList]


@pytest.fixture
def shown(qtbot: QtBot, appearance: Appearance) -> Shown:
    """A conversation of 200 messages, just opened."""
    view = ConversationView(appearance)
    qtbot.addWidget(view)
    view.resize(800, 600)
    view.show()
    state = ChatState()
    path = TurnList(view, state, appearance)
    state.show(long_conversation(200))
    view.follow_end()
    bar = view.verticalScrollBar()
    qtbot.waitUntil(lambda: view.messages[-1].is_populated and bar.value() == bar.maximum() > 0)
    return view, path


def test_only_messages_near_the_view_are_laid_out(qtbot: QtBot, shown: Shown) -> None:
    view, _ = shown
    qtbot.waitUntil(lambda: not view._later.isActive())
    laid_out = [message.is_populated for message in view.messages]
    assert laid_out[-3:] == [True] * 3
    assert sum(laid_out) < 20
    seen = view.viewport().rect().translated(0, view.verticalScrollBar().value())
    assert all(m.is_populated for m in view.messages if m.geometry().intersects(seen))


def test_the_scroll_position_is_kept_while_heights_become_known(qtbot: QtBot, shown: Shown) -> None:
    view, _ = shown
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    qtbot.waitUntil(lambda: not view._later.isActive())
    bar.setValue(bar.value() - 40)
    seen = [m for m in view.messages if not m.visibleRegion().isEmpty()]
    place = {m: m.y() - bar.value() for m in seen if m.y() >= bar.value()}
    before = bar.value()
    for number in (2, 3, 5, 9):
        view.populate_message(view.messages[number])
    assert bar.value() != before, "heights above were estimates"
    for message, top in place.items():
        assert abs(message.y() - bar.value() - top) <= 1


def test_words_far_away_are_found_and_shown(
    qtbot: QtBot, shown: Shown, appearance: Appearance
) -> None:
    view, path = shown
    bar = FindBar(appearance)
    qtbot.addWidget(bar)
    finder = Finder(bar, view, appearance)
    bar.open_bar("Answer 3.")
    assert [hit.message for hit in finder.hits] == [path.answers[3]]
    assert path.answers[3].is_populated
    qtbot.waitUntil(lambda: not path.answers[3].visibleRegion().isEmpty())
    assert not path.answers[40].is_populated


def test_a_message_far_away_is_laid_out_when_it_is_shown(qtbot: QtBot, shown: Shown) -> None:
    view, path = shown
    offloaded = path.answers[10]
    offloaded.select_tokens(range(1))  # as the panels do, which lays it out at an estimated height
    view.reveal(offloaded, QRect(0, 0, 1, 1))
    assert not offloaded.visibleRegion().isEmpty()
    layout = offloaded.layout()
    assert layout is not None
    assert offloaded.height() == layout.totalHeightForWidth(offloaded.width())
