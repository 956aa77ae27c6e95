"""The real window with an engine that follows a script."""

import pytest
from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtGui import QAccessible, QGuiApplication, QKeySequence, QTextCharFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.chat.answer_message import AnswerMessage
from app.chat.empty_state import SUGGESTIONS
from app.chat.message_widgets import Notice, UserMessage
from app.chat.pickers import DRAFTER_NAMES
from app.chat.text_view import TextView, plain_document
from app.markdown.formats import Marking
from app.model_keeper import Phase
from app.theme.tokens import DARK, LIGHT
from medusa_core.messages import (
    PREFERRED_DRAFTERS,
    Cancel,
    ChatMessage,
    CloseSession,
    Generate,
    LoadModel,
    Role,
    StopReason,
)
from tests.app.conftest import Open
from tests.app.driving import ask, errors, wait_ready
from tests.app.fakes import FakeEngine, Script

LONG = " ".join(f"word{number}" for number in range(400))


def test_a_prompt_is_sent_and_its_answer_streamed_and_figured(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    answer = ask(qtbot, window, "Hello there")
    assert answer.view.toPlainText() == engine.script.answer
    assert window.page.composer.text == ""
    request = engine.of_kind(Generate)[0]
    assert request.messages == (ChatMessage(Role.USER, "Hello there"),)
    assert answer.row.figure_texts()[1:3] == ("2.25 tokens/step", "1.80× plain")
    assert answer.row.figure_texts()[-1] == "end of answer"
    assert answer.row.isVisible()
    assert window.page.strip.tally.num_steps == 4


def test_marked_characters_are_those_of_the_document(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
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
    assert len({mark.token_index for mark in ranges}) == answer.num_accepted == 5


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


def test_messages_take_the_place_of_the_welcome(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    page = window.page
    for _ in range(2):
        assert page.empty.isVisible()
        assert not page.conversation.isVisible()
        ask(qtbot, window, "Hello")
        assert page.conversation.isVisible()
        assert not page.empty.isVisible()
        window.chat.new_chat()


def test_marks_can_be_switched_off_and_on(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    answer = ask(qtbot, window, "Hello")
    text = answer.view.toPlainText()
    ranges = answer.marked_ranges()
    assert len(underlines(answer)) == 3  # none and two heads
    window.page.strip.choose_marking(Marking.OFF)
    assert answer.document.marking is Marking.OFF
    assert answer.marked_ranges() == ()
    assert underlines(answer) == {""}
    assert answer.view.toPlainText() == text
    QTest.keyClick(window.page.strip.marks_box, Qt.Key.Key_Down)
    assert answer.document.marking is Marking.ACCEPTED
    assert answer.marked_ranges() == ranges
    assert len(underlines(answer)) == 2


@pytest.mark.parametrize("text", ["", "   ", "\n\n\t"])
def test_an_empty_prompt_cannot_be_sent(qtbot: QtBot, open_fake: Open, text: str) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    window.page.composer.set_text(text)
    assert not window.page.composer.button.isEnabled()
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    window.chat.send(text)
    assert engine.of_kind(Generate) == []
    assert window.page.conversation.messages == ()


def test_shift_enter_starts_a_new_line_and_the_composer_grows(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake()
    edit = window.page.composer.edit
    QTest.keyClicks(edit, "one")
    height = edit.height()
    QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(edit, "two")
    assert window.page.composer.text == "one\ntwo"
    assert edit.height() > height
    window.page.composer.set_text("line\n" * 200)
    assert edit.height() < window.height() / 2
    assert engine.of_kind(Generate) == []


def test_a_prompt_sent_while_the_model_loads_is_answered_afterwards(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake()
    window.chat.send("early")
    assert window.keeper.status.phase is Phase.LOADING
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers[0].view.toPlainText() == engine.script.answer


def test_escape_stops_an_answer_before_its_first_token(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    engine.gate.clear()
    window.chat.send("stop me")
    QTest.keyClick(window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert len(engine.of_kind(Cancel)) == 1
    answer = window.chat.answers[0]
    assert not answer.has_text
    assert answer.row.figure_texts()[-1] == "stopped"
    engine.gate.set()
    ask(qtbot, window, "next")
    # What was never answered is not told to the model again.
    assert engine.of_kind(Generate)[-1].messages == (ChatMessage(Role.USER, "next"),)


def test_the_button_stops_an_answer_and_keeps_what_there_is(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(answer=LONG), 3)
    wait_ready(qtbot, window)
    engine.gate.clear()
    window.chat.send("go on")
    answer = window.chat.answers[0]
    qtbot.waitUntil(lambda: answer.has_text)
    assert window.page.composer.button.accessibleName() == "Stop"
    window.page.composer.button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert answer.row.figure_texts()[-1] == "stopped"
    assert LONG.startswith(answer.view.toPlainText())
    assert window.page.composer.button.accessibleName() == "Send"
    engine.gate.set()
    ask(qtbot, window, "more")
    told = engine.of_kind(Generate)[-1].messages
    assert answer.done is not None
    assert answer.done.token_ids
    assert told[1] == ChatMessage(Role.ASSISTANT, answer.document.text, answer.done.token_ids)


def test_nothing_is_sent_while_an_answer_is_written_and_the_text_stays(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(num_before_gate=1)
    wait_ready(qtbot, window)
    engine.gate.clear()
    window.chat.send("first")
    window.page.composer.set_text("second")
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) > 0)
    qtbot.wait(20)  # for what were sent behind it
    assert len(engine.of_kind(Generate)) == 1
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.page.composer.text == "second"


def test_a_failure_before_the_answer_gives_the_prompt_back(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(prefill_error="Too long."))
    wait_ready(qtbot, window)
    window.chat.send("precious words")
    window.page.composer.set_text("typed meanwhile")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.page.composer.text == "precious words\ntyped meanwhile"
    assert [(card.message, card.hint) for card in errors(window)] == [("Too long.", "Try again.")]
    assert window.chat.answers == ()
    assert window.chat.conversation.turns == []
    engine.script = Script()
    window.page.composer.clear()
    assert ask(qtbot, window, "again").has_text


def test_a_failure_within_the_answer_keeps_what_there_is(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(decode_error="No numbers."))
    wait_ready(qtbot, window)
    window.chat.send("tell me")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers[0].document.text.startswith("One two three.")
    assert errors(window)[0].message == "No numbers."
    assert window.page.composer.text == ""
    engine.script = Script()
    assert ask(qtbot, window, "and now?").document.text == engine.script.answer


def test_an_error_can_be_dismissed(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake(Script(prefill_error="Too long."))
    wait_ready(qtbot, window)
    window.chat.send("x")
    qtbot.waitUntil(lambda: len(errors(window)) == 1)
    errors(window)[0].dismissed.emit()
    assert errors(window) == []
    assert window.page.empty.isVisible()


def test_a_model_that_cannot_be_loaded_is_explained_and_tried_again(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(Script(load_error="The file is truncated."))
    qtbot.waitUntil(lambda: len(errors(window)) == 1)
    assert window.page.header.state_label.text() == "could not be loaded"
    engine.script = Script()
    errors(window)[0].retry_requested.emit()
    wait_ready(qtbot, window)
    assert errors(window) == []
    assert len(engine.of_kind(LoadModel)) == 2


def test_the_pickers_decide_how_the_next_answer_is_decoded(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    pickers = window.page.header.pickers
    assert not pickers.temperature_box.isEnabled()
    pickers.choose_drafter("none")
    pickers.choose_rule("sample")
    assert pickers.temperature_box.isEnabled()
    pickers.temperature_box.setValue(1.2)
    answer = ask(qtbot, window, "Hello")
    settings = engine.of_kind(Generate)[0].settings
    assert (settings.drafter, settings.rule, settings.temperature) == ("none", "sample", 1.2)
    assert answer.num_accepted == 0
    assert answer.marked_ranges() == ()


def test_where_nobody_chooses_the_window_takes_what_the_command_line_takes() -> None:
    order = tuple(name for name in DRAFTER_NAMES if name in PREFERRED_DRAFTERS)
    assert order == PREFERRED_DRAFTERS
    assert next(iter(DRAFTER_NAMES)) == PREFERRED_DRAFTERS[0]


def test_a_rule_with_a_long_name_leaves_the_header_as_it_is(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake(Script())
    wait_ready(qtbot, window)
    pickers = window.page.header.pickers
    width = pickers.rule_box.width()
    pickers.choose_rule("typical")
    assert pickers.rule_box.currentText() == "Typical (creative, not exact)"
    assert pickers.rule_box.width() == width < 200
    assert pickers.rule_box.view().minimumWidth() > width
    assert pickers.temperature_box.isEnabled()


def test_regenerating_a_sample_takes_a_new_seed_and_replaces_the_answer(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    window.page.header.pickers.choose_rule("sample")
    first = ask(qtbot, window, "Hello")
    engine.script = Script(answer="Another answer.")
    first.row.regenerate_button.click()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert [a.document.text for a in window.chat.answers] == ["Another answer."]
    one, two = engine.of_kind(Generate)
    assert one.messages == two.messages
    assert one.settings.seed != two.settings.seed
    assert one.request_id != two.request_id


def test_a_failed_regeneration_keeps_the_old_answer(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    first = ask(qtbot, window, "Hello")
    text = first.document.text
    engine.script = Script(prefill_error="Out of memory.")
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers == (first,)
    assert first.isVisible()
    assert first.row.regenerate_button.isVisible()
    assert window.chat.conversation.turns[-1].answer == text
    assert errors(window)[0].message == "Out of memory."


def test_only_the_last_answer_offers_to_be_regenerated(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    shown = [answer.row.regenerate_button.isVisible() for answer in window.chat.answers]
    assert shown == [False, True]


def test_copy_puts_the_markdown_on_the_clipboard(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake(Script(answer="Some **bold** words"))
    wait_ready(qtbot, window)
    answer = ask(qtbot, window, "Hello")
    assert answer.view.toPlainText() == "Some bold words"
    answer.row.copy_button.click()
    assert QGuiApplication.clipboard().text() == "Some **bold** words"


def test_a_full_context_is_told(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(stop_reason=StopReason.CONTEXT))
    wait_ready(qtbot, window)
    ask(qtbot, window, "Hello")
    assert isinstance(window.page.conversation.messages[-1], Notice)
    assert "64 tokens" in window.page.context_label.text()
    engine.script = Script()
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert not any(isinstance(m, Notice) for m in window.page.conversation.messages)


def test_a_new_chat_forgets_the_old_one_even_while_it_is_answered(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(Script(answer=LONG), 2)
    wait_ready(qtbot, window)
    engine.gate.clear()
    window.chat.send("old")
    qtbot.waitUntil(lambda: window.chat.answers[0].has_text)
    old_session = window.chat.conversation.session_id
    QTest.keySequence(window, QKeySequence(QKeySequence.StandardKey.New))
    assert window.page.conversation.messages == ()
    assert window.page.empty.isVisible()
    assert not window.chat.is_busy
    assert [c.session_id for c in engine.of_kind(CloseSession)] == [old_session]
    engine.gate.set()
    engine.script = Script()
    answer = ask(qtbot, window, "new")
    assert answer.document.text == engine.script.answer
    assert engine.of_kind(Generate)[-1].session_id != old_session


def test_a_suggestion_sends_its_prompt(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    window.page.empty.suggestion_chosen.emit(SUGGESTIONS[0])
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert engine.of_kind(Generate)[0].messages[0].content == SUGGESTIONS[0]


def test_figures_wait_for_calibration(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(calibrates=False))
    qtbot.waitUntil(lambda: window.keeper.status.phase is Phase.READY)
    answer = ask(qtbot, window, "Hello")
    assert answer.row.figure_texts()[2] == "—× plain"
    engine.script = Script()
    window.keeper.load()
    wait_ready(qtbot, window)
    assert answer.row.figure_texts()[2] == "1.80× plain"


def test_the_view_follows_the_end_only_while_the_user_is_there(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(Script(answer=LONG), 80)
    wait_ready(qtbot, window)
    window.resize(QSize(700, 560))
    bar = window.page.conversation.verticalScrollBar()
    ask(qtbot, window, "fill the page")
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    engine.gate.clear()
    window.chat.send("more")
    qtbot.waitUntil(lambda: window.page.strip.tally.num_steps >= 70)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    bar.setValue(0)
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    qtbot.wait(50)
    assert bar.value() == 0
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_PageDown)
    assert 0 < bar.value() < bar.maximum()
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_PageUp)
    assert bar.value() == 0
    window.page.conversation.follow_end()
    assert bar.value() == bar.maximum()


def test_theme_and_zoom_change_shown_answers_and_are_remembered(
    qtbot: QtBot, open_fake: Open, tmp_path
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    answer = ask(qtbot, window, "Hello")
    ranges, height = answer.marked_ranges(), answer.view.height()

    def tint() -> str:
        cursor = answer.view.textCursor()
        cursor.setPosition(ranges[0].end)
        return cursor.charFormat().background().color().name()

    assert tint() == LIGHT.head(1).tint
    window.toggle_theme()
    assert tint() == DARK.head(1).tint
    QTest.keySequence(window, QKeySequence("Ctrl+="))
    QTest.keySequence(window, QKeySequence("Ctrl+="))
    assert answer.view.height() > height
    assert answer.marked_ranges() == ranges
    saved = (tmp_path / "preferences.json").read_text()
    assert '"dark"' in saved
    assert "1.2" in saved


def test_the_hint_for_the_first_start_goes_away_for_good(
    qtbot: QtBot, open_fake: Open, tmp_path
) -> None:
    window, _ = open_fake()
    window.page.empty.hint_dismissed.emit()
    assert '"has_read_hint": true' in (tmp_path / "preferences.json").read_text()


def test_everything_that_can_be_used_has_a_name_and_can_be_reached_by_key(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    ask(qtbot, window, "Hello")
    page = window.page
    answer = window.chat.answers[0]
    for widget in (
        page.composer.edit,
        page.composer.button,
        page.header.pickers.drafter_box,
        page.header.pickers.rule_box,
        page.header.pickers.temperature_box,
        answer.view,
        answer.row.copy_button,
        answer.row.regenerate_button,
    ):
        assert widget.accessibleName()
        assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus, widget.accessibleName()
    assert page.strip.marks_box.accessibleName()


def test_an_answer_can_be_listened_to(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    QAccessible.setActive(True)
    try:
        assert ask(qtbot, window, "Hello").document.text == engine.script.answer
    finally:
        QAccessible.setActive(False)


def test_nothing_is_ever_loaded_for_an_answer(qtbot: QtBot, open_fake: Open, tmp_path) -> None:
    (tmp_path / "secret.png").write_bytes(b"x")
    local = QUrl.fromLocalFile(str(tmp_path / "secret.png")).toString()
    script = Script(answer=f"![a]({local}) and ![b](https://example.org/b.png)")
    window, _ = open_fake(script)
    wait_ready(qtbot, window)
    answer = ask(qtbot, window, "Hello")
    for kind in range(1, 6):
        for address in (local, "https://example.org/b.png"):
            assert not answer.view.document().resource(kind, QUrl(address))
            assert answer.view.loadResource(kind, QUrl(address)) is None


def test_links_are_asked_about_and_only_the_web_is_opened(qtbot: QtBot) -> None:
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


def test_user_text_is_shown_as_it_is(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    ask(qtbot, window, "<b>bold</b> **stars** <img src='file:///x'>")
    (shown,) = [m for m in window.page.conversation.messages if isinstance(m, UserMessage)]
    assert shown.text == "<b>bold</b> **stars** <img src='file:///x'>"


def test_closing_the_window_says_so(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    with qtbot.waitSignal(window.closed):
        window.close()


def test_the_scripted_engine_ends_its_thread(qtbot: QtBot) -> None:
    engine = FakeEngine()
    engine.start(lambda _event: None)
    engine.close()
    assert engine.is_closed
