"""An answer of several rounds in the window: texts, thoughts, calls and results."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.find.finding import find_all
from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.call_card import CallCard
from app.theme.appearance import Appearance
from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import Answer
from medusa_core.chats.reasoning import AnswerSpan
from medusa_core.chats.rounds import CallState, Round, RoundCall, ToolResult
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    Role,
    ToolCall,
    as_content,
)
from tests.support.messages import DONE
from tests.support.window.fakes import steps_of

CALL = ToolCall("c1", "clock&<b>", '{"zone":"Bern"}')
TEXT = "<think>Hm.</think>Let me see.<tool_call>…</tool_call>"
SPANS = (AnswerSpan(7, 10, True), AnswerSpan(18, 29, False))


def first_round(state: CallState = CallState.REQUESTED, result: str | None = None) -> Round:
    found = None if result is None else ToolResult(as_content(result), duration_s=0.25)
    calls = (RoundCall(CALL, state, result=found),)
    return Round("r0", AnswerText.stored(TEXT, SPANS), calls, DONE)


def shown(qtbot: QtBot, appearance: Appearance, *rounds: Round) -> AnswerMessage:
    message = AnswerMessage(Answer(list(rounds), GenerateSettings(), model="Fake"), appearance)
    qtbot.addWidget(message)
    message.populate()
    return message


def test_rounds_are_shown_below_each_other_with_their_calls(
    qtbot: QtBot, appearance: Appearance
) -> None:
    said = Round("r1", AnswerText.stored("It is **noon**."), done=DONE)
    message = shown(qtbot, appearance, first_round(CallState.DONE, "<b>12:00</b>"), said)
    first, last = message.rounds
    assert first.view.toPlainText() == "Let me see."
    assert first.fold is not None
    assert first.fold.view.toPlainText() == "Hm."
    assert last.view.toPlainText() == "It is noon."
    (card,) = first.cards
    assert card.button.text() == "clock&&<b> · done · 0.2 s"
    assert card.view.isHidden()
    card.button.setChecked(True)
    assert not card.view.isHidden()
    assert '"zone": "Bern"' in card.view.toPlainText()
    assert "<b>12:00</b>" in card.view.toPlainText()
    message.row.copy_button.click()
    assert QGuiApplication.clipboard().text() == "Let me see.\n\nIt is **noon**."
    assert message.answer.total is not None
    assert message.answer.total.num_steps == 2 * DONE.num_steps


def test_a_call_shows_each_state_and_the_next_round_when_it_begins(
    qtbot: QtBot, appearance: Appearance
) -> None:
    message = shown(qtbot, appearance, first_round())
    (card,) = message.rounds[0].cards
    assert "not run" in card.button.text()
    assert not message.row.isHidden()
    answer = message.answer
    answer.last.calls = first_round(CallState.RUNNING).calls
    message.refresh()
    assert "running" in card.button.text()
    card.show_call(RoundCall(CALL, CallState.DONE, result=ToolResult((), duration_s=0.04)))
    assert card.button.text().endswith("done"), "0.0 s says nothing"
    answer.last.calls = first_round(CallState.FAILED, "No such zone").calls
    answer.rounds.append(Round("r1"))
    answer.is_running = True
    message.refresh()
    assert card.button.text() == "clock&&<b> · failed: No such zone · 0.2 s"
    assert "No such zone" in card.view.toPlainText()
    assert message.request_id == "r1"
    assert message.row.isHidden()
    answer.end(None)
    message.refresh()
    assert not message.row.isHidden()


def test_something_is_said_until_there_is_something_to_see(
    qtbot: QtBot, appearance: Appearance
) -> None:
    message = shown(qtbot, appearance, Round("r0"))
    message.answer.is_running = True
    request = Generate("s", "r0", (ChatMessage(Role.USER, "Hi"),))
    for step in steps_of(request, (b"\n", b" ", b"Hello"), (0,)):
        message.content.append(step)
        message.refresh()
        assert message._waiting.isHidden() == (step.step == 2), step.step


def test_deeply_nested_arguments_are_not_indented(qtbot: QtBot, appearance: Appearance) -> None:
    arguments = "[" * 300 + "0," * 20_000 + "0" + "]" * 300
    card = CallCard(RoundCall(CALL._replace(arguments=arguments)), appearance)
    qtbot.addWidget(card)
    assert len(card.text) < 2 * len(arguments)


def test_a_long_title_does_not_widen_the_column(qtbot: QtBot, appearance: Appearance) -> None:
    call = CALL._replace(name="a_function_with_a_long_name_" * 3)
    failed = RoundCall(call, CallState.FAILED, result=ToolResult(as_content("No. " * 40)))
    card = CallCard(failed, appearance)
    qtbot.addWidget(card)
    assert card.button.sizeHint().width() > 400
    assert card.minimumSizeHint().width() < 200


def test_words_are_found_in_all_rounds(qtbot: QtBot, appearance: Appearance) -> None:
    rounds = [first_round(), Round("r1", AnswerText.stored("I see the sea. See?"))]
    message = AnswerMessage(Answer(rounds, GenerateSettings()), appearance)
    qtbot.addWidget(message)
    before = message.searched_text
    message.populate()
    assert find_all("see", before) == find_all("see", message.searched_text)
    assert len(find_all("see", before)) == 3
    assert find_all("see. i see", before) == [], "a match doesn't reach into the next round"
    places = [message.highlight("see", number, appearance.theme) for number in range(3)]
    assert all(isinstance(place, QRect) for place in places)
    assert message.highlight("see", 3, appearance.theme) is None


def test_an_answer_under_a_schema_is_shown_as_indented_json(
    qtbot: QtBot, appearance: Appearance
) -> None:
    said = Round("r0", AnswerText.stored('{"a_b_": "*c*"}'), done=DONE)
    settings = GenerateSettings(json_schema='{"type": "object"}')
    message = AnswerMessage(Answer([said], settings, model="Fake"), appearance)
    qtbot.addWidget(message)
    before = message.searched_text
    message.populate()
    assert message.view.toPlainText().strip() == before == '{\n  "a_b_": "*c*"\n}'
    message.row.copy_button.click()
    assert QGuiApplication.clipboard().text() == '{"a_b_": "*c*"}'
