"""Shown answers: their marks, what can be done with them, and what they can't do."""

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAccessible, QKeySequence, QTextCharFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMessageBox
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.message_widgets import (
    Notice,
)
from app.chat.messages.prompt_editor import PromptEditor
from app.chat.messages.text_view import (
    TextView,
    plain_document,
)
from app.theme.text_style import Marking
from app.theme.tokens import DARK, LIGHT
from app.window.main_window import MainWindow
from medusa_core.messages import Generate, StopReason
from tests.support.window.driving import ask, figure_texts, user_messages, wait_ready
from tests.support.window.fakes import LONG, Script
from tests.support.window.fixtures import Open


def test_marked_characters_are_those_of_the_document(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    answer = ask(qtbot, window, "Hello")
    underlined = set()
    cursor = answer.view.textCursor()
    for position in range(answer.view.document().characterCount() - 1):
        cursor.setPosition(position + 1)
        style = cursor.charFormat().underlineStyle()
        if (
            style != QTextCharFormat.UnderlineStyle.NoUnderline
            or cursor.charFormat().fontUnderline()
        ):
            underlined.add(position)
    ranges = answer.marked_ranges()
    assert underlined == {p for mark in ranges for p in range(mark.start, mark.end)}
    # Of ten words: one from prefill, then 2 + 0 + 1 + 2 accepted before a bonus token each.
    assert len({mark.token_index for mark in ranges}) == answer.content.num_accepted == 5


def underlines(answer: AnswerMessage) -> set[str]:
    """The colours of all underlines; empty for text without one."""
    cursor = answer.view.textCursor()
    found = set()
    for position in range(answer.view.document().characterCount() - 1):
        cursor.setPosition(position + 1)
        style = cursor.charFormat()
        is_marked = style.underlineStyle() != QTextCharFormat.UnderlineStyle.NoUnderline
        found.add(style.underlineColor().name() if is_marked else "")
    return found


def test_marks_can_be_switched_off_and_on(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    answer = ask(qtbot, window, "Hello")
    text = answer.view.toPlainText()
    ranges = answer.marked_ranges()
    assert len(underlines(answer)) == 3  # none and two heads
    window.settings.set(marking=Marking.OFF.value)
    assert answer.document.style.marking is Marking.OFF
    assert answer.marked_ranges() == ()
    assert underlines(answer) == {""}
    assert answer.view.toPlainText() == text
    QTest.keyClick(window.page.strip.marks_box, Qt.Key.Key_Down)
    assert answer.document.style.marking is Marking.ACCEPTED
    assert answer.marked_ranges() == ranges
    assert len(underlines(answer)) == 2


def test_regenerating_a_sample_takes_a_new_seed_and_replaces_the_answer(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    window.page.settings_panel.choose_rule("sample")
    first = ask(qtbot, window, "Hello")
    engine.script = Script(answer="Another answer.")
    first.row.regenerate_button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert [a.content.text for a in window.chat.answers] == ["Another answer."]
    one, two = engine.of_kind(Generate)
    assert one.messages == two.messages
    assert one.settings.seed != two.settings.seed
    assert one.request_id != two.request_id


def test_every_answer_can_be_regenerated_and_all_versions_are_kept(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    engine.script = Script(answer="Another answer.")
    window.chat.answers[0].row.regenerate_button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert [answer.content.text for answer in window.chat.answers] == ["Another answer."]
    versions = window.chat.answers[0].row.versions
    assert versions.text == "2/2"
    versions.previous_button.click()
    assert [turn.prompt.text for turn in window.chat.conversation.turns] == ["one", "two"]
    assert window.chat.answers[0].row.versions.text == "1/2"
    assert len(window.chat.answers) == 2


def test_an_edited_message_becomes_another_version(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    first = user_messages(window)[0]
    first.row.edit_button.click()
    editor = first.findChild(PromptEditor)
    assert editor is not None
    assert editor.edit.toPlainText() == "one"
    assert editor.edit.textCursor().atEnd()
    QTest.keyClick(editor.edit, Qt.Key.Key_Escape)
    assert first.row.isVisible()
    assert first.isAncestorOf(QApplication.focusWidget())
    first.row.edit_button.click()
    editors = first.findChildren(PromptEditor)
    editors[-1].edit.setPlainText("uno")
    QTest.keyClick(editors[-1].edit, Qt.Key.Key_Return)
    assert window.page.composer.edit.hasFocus(), "what is typed next is the next message"
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert [m.text for m in engine.of_kind(Generate)[-1].messages] == ["uno"]
    (shown,) = user_messages(window)
    assert (shown.text, shown.row.versions.text) == ("uno", "2/2")
    shown.row.versions.previous_button.click()
    assert [message.text for message in user_messages(window)] == ["one", "two"]


def test_a_cut_answer_can_be_continued(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(stop_reason=StopReason.MAX_TOKENS))
    answer = ask(qtbot, window, "one")
    assert answer.done is not None
    answer.row.continue_button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    requested = engine.of_kind(Generate)[-1]
    assert requested.keep_tokens is None
    assert requested.messages[-1].token_ids == answer.done.token_ids


def test_a_branch_continues_from_an_earlier_answer(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    for text in ("one", "two"):
        ask(qtbot, window, text)
    assert not window.chat.answers[1].row.branch_button.isVisible()
    window.chat.answers[0].row.branch_button.click()
    assert len(window.chat.answers) == 1
    ask(qtbot, window, "other")
    assert user_messages(window)[1].row.versions.text == "2/2"


def test_an_answer_continues_while_another_conversation_is_shown(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(Script(answer=LONG), 2)
    engine.gate.clear()
    window.chat.send("long")
    first = window.chat.conversation
    qtbot.waitUntil(lambda: bool(window.chat.answers[0].content.text))
    window.chat.new_chat()
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.state.pending_answers)
    window.chat.open(first)
    assert window.chat.answers[0].document.text == LONG
    assert window.chat.answers[0].marked_ranges()


def test_the_plain_decoding_baseline_belongs_to_its_answer(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    answer = ask(qtbot, window, "Hello")
    shown = figure_texts(answer)
    assert shown[2] == "1.80× plain"
    window.loaded_model.load()
    wait_ready(qtbot, window)
    assert figure_texts(answer) == shown
    window.page.settings_panel.choose_drafter("none")
    plain = ask(qtbot, window, "Hello")
    assert not any("× plain" in text for text in figure_texts(plain))


def test_theme_and_zoom_change_shown_answers_and_are_remembered(
    qtbot: QtBot, open_ready: Open, tmp_path
) -> None:
    window, _ = open_ready()
    answer = ask(qtbot, window, "Hello")
    ranges, height = answer.marked_ranges(), answer.view.height()

    def tint() -> str:
        cursor = answer.view.textCursor()
        cursor.setPosition(ranges[0].end)
        return cursor.charFormat().background().color().name()

    assert tint() == LIGHT.mark("blue").tint
    window.commands.action("theme").trigger()
    assert tint() == DARK.mark("blue").tint
    QTest.keySequence(window, QKeySequence("Ctrl+="))
    QTest.keySequence(window, QKeySequence("Ctrl+="))
    assert answer.view.height() > height
    assert answer.marked_ranges() == ranges
    saved = (tmp_path / "preferences.json").read_text()
    assert '"dark"' in saved
    assert "1.2" in saved


def test_an_answer_is_accessible_to_screen_readers(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    QAccessible.setActive(True)
    try:
        assert ask(qtbot, window, "Hello").document.text == engine.script.answer
    finally:
        QAccessible.setActive(False)


def test_links_ask_first_and_only_web_links_open(qtbot: QtBot) -> None:
    view = TextView(plain_document("text"), "Text")
    qtbot.addWidget(view)
    view.show()
    view.anchorClicked.emit(QUrl("file:///etc/passwd"))
    view.anchorClicked.emit(QUrl("javascript:alert(1)"))
    assert view.findChildren(QMessageBox) == []
    view.anchorClicked.emit(QUrl("https://example.org/a?b=c"))
    (box,) = view.findChildren(QMessageBox)
    assert "https://example.org/a?b=c" in box.informativeText()
    assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
    box.reject()
    assert not view.openLinks()


@pytest.mark.parametrize("button", ["regenerate_button", "continue_button", "branch_button"])
def test_a_removed_message_gives_the_focus_to_the_composer(
    qtbot: QtBot, open_ready: Open, button: str
) -> None:
    window, _ = open_ready(Script(stop_reason=StopReason.MAX_TOKENS))
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    window.sidebar.show()
    clicked = getattr(window.chat.answers[0 if button == "branch_button" else 1].row, button)
    clicked.setFocus()
    clicked.click()
    assert window.page.composer.edit.hasFocus()
    qtbot.waitUntil(lambda: not window.chat.is_busy)


def test_an_answer_to_a_queued_question_steals_no_focus(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    window.sidebar.show()
    window.sidebar.search_edit.setFocus()
    window.chat.send("one")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.sidebar.search_edit.hasFocus()


def test_esc_in_the_search_clears_it_before_it_stops_an_answer(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    engine.gate.clear()
    window.chat.send("one")
    window.sidebar.show()
    search = window.sidebar.search_edit
    search.setFocus()
    search.setText("heron")
    QTest.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    assert window.chat.is_busy
    QTest.keyClick(search, Qt.Key.Key_Escape)
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    done = window.chat.conversation.turns[-1].answer.done
    assert done is None or done.stop_reason is StopReason.CANCELLED


def test_greedy_warns_that_it_gives_the_same_text_again(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "Hello")
    assert notices(window) == []
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    (output,) = notices(window)
    assert "same text again: Greedy" in output
    window.page.settings_panel.choose_rule("sample")
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert notices(window) == []


def test_a_chat_stops_answers_that_repeat_themselves_unless_told_otherwise(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    ask(qtbot, window, "Hello")
    window.page.settings_panel.repetition_box.click()
    ask(qtbot, window, "Again")
    asked = [one for one in engine.of_kind(Generate) if isinstance(one, Generate)]
    assert [one.settings.stop_on_repetition for one in asked[-2:]] == [True, False]


def notices(window: MainWindow) -> list[str]:
    """Return the application's notices between messages."""
    return [m.text for m in window.page.conversation.messages if isinstance(m, Notice)]


def test_a_blank_answer_says_why_it_is_empty_and_what_to_do(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    for reason, words, continues in (
        (StopReason.EOS, "ended its answer without a word. Regenerate asks again", False),
        (StopReason.STOP_STRING, "began with a stop string", False),
        (StopReason.MAX_TOKENS, "token limit was reached before the first word", True),
        (StopReason.CONTEXT, "context was full before the first word", True),
    ):
        engine.script = Script(answer=" \n \n ", stop_reason=reason)
        window.chat.new_chat()
        answer = ask(qtbot, window, "one")
        shown = [label.text() for label in answer.findChildren(QLabel) if label.isVisible()]
        assert any(words in text for text in shown), reason
        assert answer.view.isHidden()
        assert answer.row.continue_button.isVisible() is continues
        assert notices(window) == [], "it is said once"


def test_an_answer_at_its_token_limit_says_how_to_continue(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready(Script(stop_reason=StopReason.MAX_TOKENS))
    answer = ask(qtbot, window, "one")
    (notice,) = window.page.conversation.findChildren(Notice)
    assert "reached its token limit. Continue goes on with it" in notice.text
    assert answer.row.continue_button.isVisible()
