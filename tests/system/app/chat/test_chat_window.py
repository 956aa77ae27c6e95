"""The real window with an engine that follows a script."""

from dataclasses import replace

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.messages.message_widgets import Notice
from app.chat.suggestions import CODE, DEMO, SMALL
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    ChatMessage,
    DrafterChoice,
    Generate,
    Role,
    StopReason,
)
from tests.support.window.driving import ask, figure_texts
from tests.support.window.fakes import LONG, Script
from tests.support.window.fixtures import Open


def test_a_prompt_is_sent_and_its_answer_is_streamed_with_figures(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    answer = ask(qtbot, window, "Hello there")
    assert answer.view.toPlainText() == engine.script.answer
    assert window.page.composer.edit.toPlainText() == ""
    request = engine.of_kind(Generate)[0]
    assert request.messages == (ChatMessage(Role.USER, "Hello there"),)
    assert figure_texts(answer)[1:3] == ("2.25 tokens/step", "1.80× plain")
    assert figure_texts(answer)[-1] == "end of answer"
    assert answer.row.isVisible()
    assert window.page.strip.tally.num_steps == 4


def test_messages_take_the_place_of_the_welcome(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    page = window.page
    for _ in range(2):
        assert page.empty.isVisible()
        assert not page.conversation.isVisible()
        ask(qtbot, window, "Hello")
        assert page.conversation.isVisible()
        assert not page.empty.isVisible()
        window.chat.new_chat()


def test_a_prompt_sent_while_the_model_loads_is_answered_afterwards(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake()
    window.chat.send("early")
    assert window.loaded_model.status.phase is Phase.LOADING
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.chat.answers[0].view.toPlainText() == engine.script.answer


def test_nothing_is_sent_while_an_answer_is_written(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(num_before_gate=1)
    engine.gate.clear()
    window.chat.send("first")
    window.page.composer.edit.setPlainText("second")
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) > 0)
    QApplication.processEvents()  # for what were sent behind it
    assert len(engine.of_kind(Generate)) == 1
    engine.gate.set()
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) == 2)
    qtbot.waitUntil(lambda: not window.chat.is_busy)


def test_the_panel_decides_how_the_next_answer_is_decoded(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    settings_panel = window.page.settings_panel
    temperature = settings_panel.numbers.boxes["temperature"]
    assert not temperature.isEnabled()
    window.page.header.drafter_chosen.emit("none")
    settings_panel.choose_rule("sample")
    assert temperature.isEnabled()
    temperature.setValue(1.2)
    answer = ask(qtbot, window, "Hello")
    settings = engine.of_kind(Generate)[0].settings
    assert (settings.drafter, settings.rule, settings.temperature) == ("none", "sample", 1.2)
    assert answer.content.num_accepted == 0
    assert answer.marked_ranges() == ()


def test_the_window_offers_the_engines_drafters_and_selects_the_first(open_ready: Open) -> None:
    window, _ = open_ready()
    page = window.page
    loaded = window.loaded_model.status.loaded
    assert loaded is not None
    for box in (page.header.drafter_box, page.settings_panel.drafter_box):
        labels = [box.itemText(i) for i in range(box.count())]
        assert labels == [choice.label for choice in loaded.drafters]
    turned = replace(loaded, drafters=loaded.drafters[::-1])
    page.offer(turned)
    for box in (page.header.drafter_box, page.settings_panel.drafter_box):
        again = [box.itemText(i) for i in range(box.count())]
        assert again == labels, "the default changes, the order doesn't"
    assert page.settings_panel.drafter == turned.drafters[0]
    suffix = DrafterChoice("suffix", "Suffix automaton", "What followed the longest match.")
    page.offer(replace(loaded, drafters=(suffix,)))
    assert page.settings_panel.generate_settings().drafter == "suffix"
    assert page.header.drafter_box.currentText() == "Suffix automaton"
    assert page.settings_panel.drafter_box.currentText() == "Suffix automaton"


def test_a_choice_with_a_long_name_doesnt_widen_header_and_panel(open_ready: Open) -> None:
    window, _ = open_ready()
    window.page.show_panel(True)
    rule_box = window.page.settings_panel.rule_box
    width = rule_box.width()
    window.page.settings_panel.choose_rule("typical")
    assert rule_box.currentText() == "Typical (creative, not exact)"
    assert rule_box.width() == width < 300
    rule_box.showPopup()
    assert rule_box.view().minimumWidth() > rule_box.fontMetrics().horizontalAdvance("Typical")
    rule_box.hidePopup()
    long = DrafterChoice("long", "A name of a drafter that is far too long for it", "Long.")
    loaded = window.loaded_model.status.loaded
    assert loaded is not None
    header = window.page.header
    before = (header.height(), header.drafter_box.width())
    window.page.offer(replace(loaded, drafters=(long,)))
    assert (header.height(), header.drafter_box.width()) == before


def test_a_full_context_is_reported(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(stop_reason=StopReason.CONTEXT))
    ask(qtbot, window, "Hello")
    assert isinstance(window.page.conversation.messages[-1], Notice)
    qtbot.waitUntil(lambda: "64 tokens" in window.page.context_label.text())
    engine.script = Script(answer="Another answer, which ends by itself.")
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert not any(isinstance(m, Notice) for m in window.page.conversation.messages)


def test_a_new_chat_can_begin_during_an_answer(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(answer=LONG), 2)
    engine.gate.clear()
    window.chat.send("old")
    qtbot.waitUntil(lambda: bool(window.chat.answers[0].content.text))
    old_session = window.chat.conversation.session_id
    QTest.keySequence(window, QKeySequence(QKeySequence.StandardKey.New))
    assert window.page.conversation.messages == ()
    assert window.page.empty.isVisible()
    assert not window.chat.is_busy
    engine.gate.set()
    engine.script = Script()
    answer = ask(qtbot, window, "new")
    assert answer.content.text == engine.script.answer
    assert engine.of_kind(Generate)[-1].session_id != old_session


def test_a_suggestion_sends_its_prompt(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    window.page.composer.edit.setPlainText("mine")
    window.page.empty.suggestion_chosen.emit(DEMO[0])
    assert window.page.composer.edit.toPlainText() == "mine"
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert engine.of_kind(Generate)[0].messages[0].text == DEMO[0]


def test_suggested_questions_are_replaced_whatever_their_number(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    empty = window.page.empty
    empty.show_suggestions(SMALL)
    with qtbot.waitSignal(empty.suggestion_chosen) as chosen:
        empty.buttons[-1].click()
    assert chosen.args == [SMALL[-1]]
    assert [button.text() for button in empty.buttons] == list(SMALL)


def test_suggested_questions_are_readable_in_any_width(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    window.page.empty.show_suggestions(CODE)
    window.page.show_panel(True)
    window.resize(QSize(1120, 800))
    button = window.page.empty.buttons[0]

    def visible_width() -> int:
        return button.visibleRegion().boundingRect().width()

    qtbot.waitUntil(lambda: 0 < visible_width() == button.width())
    assert button.width() < button.fontMetrics().horizontalAdvance(CODE[0])
    qtbot.waitUntil(lambda: button.height() >= button.heightForWidth(button.width()))
    assert button.height() > button.sizeHint().height()


def test_the_view_scrolls_along_only_if_it_is_at_the_end(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(answer=LONG), 80)
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
    qtbot.waitUntil(lambda: not window.page.conversation._later.isActive())
    assert bar.value() == 0
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_PageDown)
    assert 0 < bar.value() < bar.maximum()
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_PageUp)
    assert bar.value() == 0
    window.page.conversation.follow_end()
    assert bar.value() == bar.maximum()


def test_the_hint_of_the_first_start_disappears_for_good(
    qtbot: QtBot, open_fake: Open, tmp_path
) -> None:
    window, _ = open_fake()
    window.page.empty.hint_dismissed.emit()
    assert '"has_read_hint": true' in (tmp_path / "preferences.json").read_text()
