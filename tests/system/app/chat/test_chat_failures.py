"""Answers that are stopped or fail: nothing is lost, and it is said why."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from medusa_core.loading.state import Phase
from medusa_core.messages import Cancel, ChatMessage, Generate, LoadModel, Role, StopReason
from tests.support.window.driving import ask, errors, figure_texts, wait_ready
from tests.support.window.fakes import LONG, Script
from tests.support.window.fixtures import Open


def test_escape_stops_an_answer_before_its_first_token(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    engine.gate.clear()
    window.chat.send("stop me")
    QTest.keyClick(window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert len(engine.of_kind(Cancel)) == 1
    answer = window.chat.answers[0]
    assert not answer.content.text
    assert figure_texts(answer) == ("Stopped before the first word",)
    engine.gate.set()
    ask(qtbot, window, "next")
    # What was never answered is not told to the model again.
    assert engine.of_kind(Generate)[-1].messages == (ChatMessage(Role.USER, "next"),)


def test_the_stop_button_keeps_the_text_so_far(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(answer=LONG), 3)
    engine.gate.clear()
    window.chat.send("go on")
    answer = window.chat.answers[0]
    qtbot.waitUntil(lambda: bool(answer.content.text))
    assert window.page.composer.button.accessibleName() == "Stop"
    window.page.composer.button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert figure_texts(answer)[-1] == "stopped"
    assert LONG.startswith(answer.view.toPlainText())
    assert window.page.composer.button.accessibleName() == "Send"
    engine.gate.set()
    ask(qtbot, window, "more")
    reported = engine.of_kind(Generate)[-1].messages
    assert answer.done is not None
    assert answer.done.token_ids
    assert reported[1] == ChatMessage(Role.ASSISTANT, answer.content.text, answer.done.token_ids)


def test_a_failure_before_the_first_token_restores_the_prompt(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(Script(prefill_error="Too long."))
    window.chat.send("precious words")
    window.page.composer.edit.setPlainText("typed meanwhile")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.page.composer.edit.toPlainText() == "precious words\ntyped meanwhile"
    assert [(card.message, card.hint) for card in errors(window)] == [("Too long.", "Try again.")]
    assert window.chat.answers == ()
    assert window.chat.conversation.turns == []
    engine.script = Script()
    window.page.composer.edit.clear()
    assert ask(qtbot, window, "again").content.text


def test_a_failure_within_an_answer_keeps_the_text_so_far(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(decode_error="No numbers."))
    window.chat.send("tell me")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers[0].document.text.startswith("One two three.")
    assert errors(window)[0].message == "No numbers."
    assert window.page.composer.edit.toPlainText() == ""
    engine.script = Script()
    assert ask(qtbot, window, "and now?").document.text == engine.script.answer


def test_a_lost_device_disables_sending_and_keeps_all_text(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(decode_error="The card is lost.", loses_device=True))
    window.chat.send("tell me")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers[0].document.text.startswith("One two three.")
    assert errors(window)[0].message == "The card is lost."
    composer, num_asked = window.page.composer, len(engine.of_kind(Generate))
    composer.edit.setPlainText("and now?")
    assert not composer.button.isEnabled()
    assert "restart" in composer.button.toolTip()
    composer.edit.submitted.emit()
    window.chat.send("and now?")
    window.chat.send_suggestion("A joke")
    window.chat.regenerate()
    assert composer.edit.toPlainText() == "and now?"
    window.chat.edit(0, "tell me more")
    assert composer.edit.toPlainText() == "tell me more\nand now?"
    assert len(engine.of_kind(Generate)) == num_asked


def test_a_model_that_cannot_be_loaded_is_explained_and_can_be_tried_again(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(Script(load_error="The file is truncated."))
    qtbot.waitUntil(lambda: len(errors(window)) == 1)
    assert window.page.header.state_label.text() == "could not be loaded"
    engine.script = Script()
    buttons = errors(window)[0].findChildren(QPushButton)
    next(one for one in buttons if one.text() == "Try again").click()
    wait_ready(qtbot, window)
    assert errors(window) == []
    assert len(engine.of_kind(LoadModel)) == 2


def test_a_failed_regeneration_keeps_the_old_answer(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    first = ask(qtbot, window, "Hello")
    text = first.content.text
    engine.script = Script(prefill_error="Out of memory.")
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    (shown,) = window.chat.answers
    assert shown.content.text == text
    assert shown.done == first.done
    qtbot.waitUntil(shown.row.regenerate_button.isVisible)
    assert window.chat.conversation.turns[-1].answer.text == text
    assert errors(window)[0].message == "Out of memory."


def test_an_answer_names_the_model_that_wrote_it_not_the_one_that_was_refused(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    engine.script = Script(load_error="It has no chat template.")
    window.loaded_model.load(ModelChoice("Refused", Path("/refused")))
    window.chat.send("who are you?")
    expected = window.chat.conversation.turns[0].answer
    assert expected.model == "Refused"
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.READY)
    assert [card.message for card in errors(window)] == ["It has no chat template."]
    demo = demo_choice()
    assert (expected.model, expected.model_key) == (demo.name, str(demo.model_dir))
    (shown,) = window.chat.answers
    assert (shown.answer.model, shown._speaker.text()) == (demo.name, demo.name)
    assert window.chat.path._reroll_obstacle(expected) == ""


def test_an_answer_cut_by_a_model_change_names_the_previous_model(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(Script(answer=LONG), 3)
    engine.gate.clear()
    window.chat.send("go on")
    (shown,) = window.chat.answers
    qtbot.waitUntil(lambda: bool(shown.content.text))
    window.loaded_model.load(ModelChoice("Next", Path("/next")))
    window.chat.stop()
    qtbot.waitUntil(lambda: window.loaded_model.choice.name == "Next" and not window.chat.is_busy)
    assert window.chat.conversation.turns[0].answer.model == demo_choice().name


def test_an_answer_that_failed_midway_can_be_continued(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(decode_error="No numbers."))
    window.chat.send("tell me")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    (cut,) = window.chat.answers
    assert figure_texts(cut) == ("interrupted",)
    assert not cut.row.continue_button.isHidden()
    engine.script = Script()
    cut.row.continue_button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    *_, given = engine.of_kind(Generate)[-1].messages
    assert (given.role, given.text) == (Role.ASSISTANT, cut.content.text)
    assert given.token_ids
    assert window.chat.answers[0].done is not None
    assert window.chat.answers[0].done.stop_reason is StopReason.EOS
