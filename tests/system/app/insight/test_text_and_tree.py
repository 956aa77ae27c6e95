"""From the text of an answer to the tree of its steps, and back."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QToolTip,
)
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.window.main_window import MainWindow
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import Generate
from tests.support.window.driving import ask
from tests.support.window.fixtures import Open, Seen
from tests.support.window.looks import centre_of, framed, shown

_CTRL = Qt.KeyboardModifier.ControlModifier


def test_a_click_in_the_text_shows_its_step_and_a_node_its_text(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, answer = answered
    point = centre_of(answer, "seven").toPoint()
    QTest.mouseClick(answer.view.viewport(), Qt.MouseButton.LeftButton, _CTRL, point)
    panel = window.insight.tree
    assert panel is not None
    assert "␣seven" in shown(panel)
    chosen = panel.view.layout_shown.nodes[panel.view.chosen]
    assert chosen.text == "␣seven"
    panel.view.choose(0)
    panel.view.node_chosen.emit(1)
    assert framed(answer) == [panel.view.layout_shown.nodes[1].text.replace("␣", " ")]


def test_the_cursor_key_opens_the_step_too(answered: tuple[MainWindow, AnswerMessage]) -> None:
    window, answer = answered
    cursor = answer.view.document().find("two")
    cursor.setPosition(cursor.selectionStart())
    answer.view.setTextCursor(cursor)
    QTest.keyClick(answer.view, Qt.Key.Key_Return)
    assert window.insight.timeline.index == 1


def test_the_step_that_is_shown_is_framed_in_the_text(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    window.insight.open_tree()
    window.insight.timeline.go(1)
    assert framed(answer) == [" two three. Four"], "one frame for one step"
    window.commands.action("theme").trigger()
    assert "".join(framed(answer)) == " two three. Four"
    window.insight.timeline.follow(True)
    assert framed(answer) == []


def test_only_the_answer_that_is_shown_is_framed(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, first = answered
    second = ask(qtbot, window, "More")
    window.insight.open_tree()
    window.insight.timeline.go(1)
    assert (framed(first), "".join(framed(second))) == ([], " two three. Four")
    first.token_pressed.emit(4)
    assert framed(second) == []
    assert framed(first)


def test_hovering_shows_the_tokens_card(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, answer = answered
    cards: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, html, _view: cards.append(html))
    hidden: list[bool] = []
    monkeypatch.setattr(QToolTip, "hideText", lambda: hidden.append(True))
    at = answer.view.position_at(centre_of(answer, "three"))
    answer.view.hovered.emit(at)
    answer.view.hovered.emit(at + 1)  # the same token: no second card
    assert len(cards) == 1
    assert "␣three." in cards[0]
    assert "head 2, accepted" in cards[0]
    answer.view.hovered.emit(-1)
    assert hidden


@pytest.mark.parametrize("word", ["One", "three", "ten"])
def test_hit_testing_finds_the_character_under_the_mouse(seen: Seen, word: str) -> None:
    _, answer = seen
    at = answer.view.position_at(centre_of(answer, word))
    start = answer.view.toPlainText().index(word)
    assert start <= at < start + len(word)
    assert answer.view.position_at(QPointF(answer.view.width() - 2, 4)) in (
        -1,
        len(answer.view.toPlainText()),
    )


def test_reroll_keeps_the_text_before_the_token(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    answer = ask(qtbot, window, "Hello")
    at = answer.view.toPlainText().index("Four")
    menu = answer.menu_at(at)
    action = next(a for a in menu.actions() if a.text() == "Reroll from here")
    assert action.isEnabled()
    action.trigger()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    turn = window.chat.conversation.turns[-1].answer
    assert turn.keep_tokens == 3
    assert turn.given is not None
    assert turn.given.token_ids == tuple(range(10))
    request = engine.of_kind(Generate)[-1]
    assert isinstance(request, Generate)
    assert request.keep_tokens == 3
    assert request.messages[-1] == turn.given
    assert len(window.chat.answers) == 1
    assert window.chat.answers[0] is not answer


def test_an_older_answer_is_rerolled_in_place_and_what_followed_is_kept(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, first = answered
    ask(qtbot, window, "More")
    action = next(a for a in first.menu_at(0).actions() if a.text() == "Reroll from here")
    action.trigger()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    (answer,) = window.chat.answers
    assert answer.row.versions.text == "2/2"
    answer.row.versions.previous_button.click()
    assert [turn.prompt.text for turn in window.chat.conversation.turns][-1] == "More"
    assert window.chat.answers[0].document.text == first.content.text


def test_an_answer_of_another_model_says_why_it_cannot_be_rerolled(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, answer = answered
    window.loaded_model.load(ModelChoice("other", tmp_path))
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)
    reroll = next(a for a in answer.menu_at(0).actions() if a.text() == "Reroll from here")
    assert not reroll.isEnabled()
    assert "Llama-Pebble wrote this answer" in reroll.toolTip()
