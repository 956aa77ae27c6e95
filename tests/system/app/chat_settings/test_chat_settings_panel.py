"""The side panel, the header and the meter: what people set, and what the engine gets."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QStyleOptionViewItem, QWidget
from pytestqt.qtbot import QtBot

from app.chat.chat_page import ChatPage
from app.chat.messages.message_widgets import Notice
from app.chat.strip.memory_watch import (
    GIB,
    MemoryWatch,
    memory_texts,
)
from app.theme.fonts import MAX_ZOOM
from app.window.main_window import START_SIZE, MainWindow
from medusa_core.chats.presets import Presets
from medusa_core.chats.settings import (
    SETTINGS,
    ChatSettings,
)
from medusa_core.messages import (
    Advice,
    ChatMessage,
    ContextCut,
    Count,
    Counted,
    Cut,
    DrafterSpeed,
    Failed,
    Generate,
    LayersMoved,
    Move,
    MoveReason,
    Overflow,
    Progress,
    Role,
    ThinkingSwitch,
)
from tests.support.window.driving import ask, errors, show_all_settings, wait_ready
from tests.support.window.fakes import FakeEngine, Script
from tests.support.window.fixtures import Open, Seen

THOUGHT = "Let me see.\n</think>\n\nFour."


@pytest.fixture
def ready(open_ready: Open) -> tuple[MainWindow, FakeEngine]:
    window, engine = open_ready()
    return window, engine


Ready = tuple[MainWindow, FakeEngine]


def requested(qtbot: QtBot, ready: Ready, text: str = "Hello") -> Generate:
    """Return the command that sending a prompt submits to the engine."""
    window, engine = ready
    ask(qtbot, window, text)
    command = engine.of_kind(Generate)[-1]
    assert isinstance(command, Generate)
    return command


def test_temperature_0_is_shown_as_greedy_and_delta_names_the_setting_it_follows(
    qtbot: QtBot, ready: Ready
) -> None:
    settings_panel = ready[0].page.settings_panel
    settings_panel.choose_rule("typical")
    boxes = settings_panel.numbers.boxes
    assert boxes["delta"].isEnabled()
    assert boxes["epsilon"].isEnabled()
    assert (boxes["delta"].text(), boxes["epsilon"].text()) == ("√ε", "0.09")
    assert requested(qtbot, ready).settings.delta == 0
    settings_panel.choose_number("delta", 0.4)
    settings_panel.choose_number("temperature", 0)
    assert (boxes["delta"].text(), boxes["temperature"].text()) == ("0.40", "greedy")
    settings = requested(qtbot, ready).settings
    assert (settings.delta, settings.temperature) == (0.4, 0)
    assert (
        ChatSettings().with_json(settings_panel.settings().as_json()) == settings_panel.settings()
    )
    settings_panel.choose_rule("greedy")
    assert settings_panel.numbers.rows["delta"].isHidden()


# Settings -----------------------------------------------------------------------------------------


def test_every_declared_setting_has_a_row_that_reaches_the_engine(
    qtbot: QtBot, ready: Ready
) -> None:
    settings_panel = ready[0].page.settings_panel
    numbers = settings_panel.numbers
    settings_panel.choose_rule("typical")
    others = {}
    for name, setting in SETTINGS.items():
        row, box = numbers.rows[name], numbers.boxes[name]
        assert (box.minimum(), box.maximum()) == (setting.low, setting.high), name
        assert box.accessibleName() == setting.label
        assert setting.meaning in box.accessibleDescription()
        assert setting.drafting in box.accessibleDescription()
        assert row.reset_button.isHidden(), name
        other = setting.low if setting.low != setting.default else setting.low + 5 * setting.step
        box.setValue(other)
        assert not row.reset_button.isHidden(), name
        others[name] = pytest.approx(other)
    settings = requested(qtbot, ready).settings
    assert {name: getattr(settings, name) for name in others} == others
    for name, setting in SETTINGS.items():
        numbers.rows[name].reset_button.click()
        assert getattr(settings_panel.settings(), name) == setting.default
        assert numbers.rows[name].reset_button.isHidden(), name


def test_an_unused_setting_is_disabled_and_says_why(ready: Ready) -> None:
    window, _ = ready
    settings_panel = window.page.settings_panel
    temperature = settings_panel.numbers.boxes["temperature"]
    assert not temperature.isEnabled()
    assert "Greedy always takes the likeliest token" in temperature.accessibleDescription()
    assert "nothing to draw" in settings_panel.groups["Sampling"].note
    settings_panel.choose_rule("sample")
    assert temperature.isEnabled()
    assert settings_panel.groups["Sampling"].note == ""
    settings_panel.choose_drafter("none")
    assert not settings_panel.numbers.boxes["tree_rows"].isEnabled()
    assert "drafts nothing" in settings_panel.groups["Speed-up"].note


def test_settings_of_one_rule_or_drafter_are_visible_only_while_it_is_chosen(ready: Ready) -> None:
    window, _ = ready
    show_all_settings(window)
    panel = window.page.settings_panel
    rows = panel.numbers.rows

    def seen() -> set[str]:
        special = (name for name in SETTINGS if SETTINGS[name].when.is_of_one_choice)
        return {name for name in special if rows[name].isVisible()}

    panel.choose_rule("sample")
    panel.choose_drafter("medusa")
    assert not seen()
    panel.choose_rule("typical")
    assert seen() == {"epsilon", "delta"}
    panel.choose_drafter("lookahead")
    assert seen() == {"epsilon", "delta", "lookahead_window", "lookahead_size", "lookahead_guesses"}
    assert all(rows[name].field.isEnabled() for name in seen())
    panel.choose_rule("greedy")
    panel.choose_drafter("none")
    assert not seen()
    notes = panel.groups["Sampling"].note + panel.groups["Speed-up"].note
    assert "Only" not in notes


def test_nothing_in_the_panel_is_wider_than_the_panel(qtbot: QtBot, ready: Ready) -> None:
    window, _ = ready
    window.resize(START_SIZE)
    show_all_settings(window)
    (area,) = window.page.settings_panel.findChildren(QScrollArea)
    content = area.widget()
    assert content is not None
    qtbot.waitUntil(area.verticalScrollBar().isVisible)
    assert content.minimumSizeHint().width() <= area.viewport().width()


def test_a_disabled_number_is_shown_as_a_word_and_can_be_typed_over(
    qtbot: QtBot, ready: Ready
) -> None:
    window, _ = ready
    window.page.show_panel(True)
    box = window.page.settings_panel.numbers.boxes["max_new_tokens"]
    assert box.text() == "4096"
    box.setFocus()
    box.selectAll()
    QTest.keyClicks(box, "128")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert window.page.settings_panel.settings().max_new_tokens == 128
    box.selectAll()
    QTest.keyClicks(box, "no limit")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert window.page.settings_panel.settings().max_new_tokens == 0


def test_the_system_prompt_and_stop_strings_go_with_the_question(
    qtbot: QtBot, ready: Ready
) -> None:
    window, _ = ready
    settings_panel = window.page.settings_panel
    settings_panel.system_edit.setPlainText("Answer as a pirate.")
    settings_panel.stop_edit.setPlainText("END\n\\n\\n")
    settings_panel.choose_rule("sample")
    QTest.keyClicks(settings_panel.seed_box, "42")
    command = requested(qtbot, ready)
    assert command.messages[0] == ChatMessage(Role.SYSTEM, "Answer as a pirate.")
    assert command.settings.stop == ("END", "\n\n")
    assert command.settings.seed == 42
    assert command.settings.overflow is Overflow.ROLLING
    assert command.settings.max_new_tokens == 4096


def test_settings_belong_to_the_chat_and_new_ones_begin_with_the_default(
    qtbot: QtBot, ready: Ready, tmp_path: Path
) -> None:
    window, _ = ready
    settings_panel = window.page.settings_panel
    settings_panel.choose_rule("sample")
    kept = settings_panel.settings()
    window.chat.new_chat()
    assert settings_panel.settings() == ChatSettings()
    settings_panel.show_settings(kept)  # as the history does
    settings_panel.presets.use_for_new_chats()
    settings_panel.choose_rule("greedy")
    window.chat.new_chat()
    assert settings_panel.settings() == kept
    assert Presets(tmp_path).new_chats == kept


# Presets ------------------------------------------------------------------------------------------


def test_a_preset_is_chosen_changed_saved_and_deleted(qtbot: QtBot, ready: Ready) -> None:
    window, _ = ready
    settings_panel = window.page.settings_panel
    bar = settings_panel.presets
    assert bar.box.currentText() == "Exact"
    bar.box.setCurrentIndex(bar.box.findText("Balanced"))
    bar.box.activated.emit(bar.box.currentIndex())
    assert (settings_panel.rule.name, settings_panel.settings().top_p) == ("sample", 0.95)
    top_p = settings_panel.numbers.rows["top_p"].reset_button
    assert top_p.isHidden(), "nothing was changed in the preset"
    settings_panel.choose_number("temperature", 1.5)
    assert not top_p.isHidden()
    assert bar.box.currentText() == "Your own settings"
    bar.save_as("Hot")
    assert bar.box.currentText() == "Hot"
    names = {action.text(): action for action in entries(bar.menu)}
    assert names["Delete"].isEnabled()
    names["Delete"].trigger()
    assert bar.box.findText("Hot") < 0
    bar.save_as("Exact")
    assert "can't be changed" in errors(window)[-1].message


def entries(menu) -> list:
    """A menu's entries as they are when it opens."""
    menu.aboutToShow.emit()
    return menu.actions()


def test_presets_of_the_program_can_only_be_copied(seen: Seen) -> None:
    bar = seen[0].page.settings_panel.presets
    enabled = {a.text(): a.isEnabled() for a in entries(bar.menu) if a.text()}
    assert (enabled["Delete"], enabled["Rename…"], enabled["Duplicate"]) == (False, False, True)


def test_damaged_presets_are_reported_when_the_window_opens(
    qtbot: QtBot, open_fake: Open, tmp_path: Path
) -> None:
    (tmp_path / "presets.json").write_text("{")
    window, _ = open_fake()
    assert errors(window)[0].message == "Your presets can't be read."
    wait_ready(qtbot, window)
    assert window.page.settings_panel.presets.box.currentText() == "Exact"


# The meter ----------------------------------------------------------------------------------------


def test_the_meter_counts_while_typing_and_warns_before_sending(qtbot: QtBot, ready: Ready) -> None:
    window, engine = ready
    label = window.page.context_label
    window.page.composer.edit.setPlainText("one two three")
    qtbot.waitUntil(lambda: label.text() == "3 of 64 tokens")
    window.page.composer.edit.setPlainText("word " * 80)
    qtbot.waitUntil(
        lambda: label.text() == "2 earlier messages don't fit and won't be read · 10 of 64 tokens"
    )
    assert not engine.of_kind(Generate)
    window.page.composer.edit.clear()
    window.page.settings_panel.system_edit.setPlainText("a b c d")
    qtbot.waitUntil(lambda: label.text() == "4 of 64 tokens")


def test_an_answer_that_filled_the_context_offers_ways_to_continue(
    qtbot: QtBot, ready: Ready
) -> None:
    window, engine = ready
    label = window.page.context_label
    lack = "The last message alone needs 64 tokens."

    def count_too_long(command: Count) -> None:
        ids = (command.session_id, command.request_id)
        engine._tell(Counted(*ids, 64, 64, 64, None, lack, ""))

    engine._count = count_too_long  # type: ignore[method-assign]
    window.chat.meter.refresh()
    qtbot.waitUntil(lambda: label.text().startswith("The answer filled"))
    assert "(64 tokens). Start a new chat, or go on" in label.text()
    assert not label.property("warns")
    window.page.composer.edit.setPlainText("one two three")
    qtbot.waitUntil(lambda: label.text() == f"Too long: {lack}")
    assert label.property("warns")


def test_the_template_page_shows_the_prompt_and_a_mistake_in_the_template(
    qtbot: QtBot, ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, engine = ready
    settings_panel = window.page.settings_panel
    window.page.composer.edit.setPlainText("Hello")
    assert settings_panel.template.text.toPlainText() == ""
    settings_panel.groups["Template"].heading.click()
    qtbot.waitUntil(lambda: settings_panel.template.text.toPlainText() == "Hello")
    message = "The chat template refuses this conversation in line 3: no systems."

    def refuse(command: Count) -> None:
        ids = (command.session_id, command.request_id)
        engine._tell(Failed(*ids, "TemplateError", message, "Mend it."))

    monkeypatch.setattr(engine, "_count", refuse)
    window.page.composer.edit.setPlainText("Hello again")
    qtbot.waitUntil(lambda: not settings_panel.template.error.isHidden())
    assert "line 3" in settings_panel.template.error.text()


def test_a_long_prompt_says_how_much_of_it_is_read_and_how_to_stop(
    qtbot: QtBot, ready: Ready
) -> None:
    window, engine = ready
    engine.gate.clear()
    window.chat.send("Hello")
    qtbot.waitUntil(lambda: bool(engine.of_kind(Generate)))
    command = engine.of_kind(Generate)[-1]
    ids, text = (command.session_id, command.request_id), "Reading 64 of 1,204 tokens"
    engine._tell(Progress(*ids, "prefill", 0.053, text, 64, 1204))
    memory_texts = "Reading 64 of 1,204 tokens … 5% · Esc stops"
    answer = window.chat.answers[-1]
    qtbot.waitUntil(lambda: answer._waiting.text() == memory_texts)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    engine.gate.set()


def test_omitted_messages_and_offloaded_layers_are_mentioned_in_the_chat(
    qtbot: QtBot, ready: Ready
) -> None:
    window, engine = ready
    engine.gate.clear()
    window.chat.send("Hello")
    qtbot.waitUntil(lambda: bool(engine.of_kind(Generate)))
    command = engine.of_kind(Generate)[-1]
    ids = (command.session_id, command.request_id)
    engine._tell(ContextCut(*ids, Cut(4, 300), 700, 1024))
    engine._tell(LayersMoved(*ids, Move(MoveReason.LOST, "attic", ("cellar",), 12)))
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    notices = [m.text for m in window.page.conversation.messages if isinstance(m, Notice)]
    assert notices == [
        "The model no longer reads 4 earlier messages: they don't fit into its context.",
        "attic is lost: its layers (12) are now at cellar.",
    ]


# Header and window --------------------------------------------------------------------------------


def test_control_enter_sends_and_another_key_regenerates(qtbot: QtBot, ready: Ready) -> None:
    window, engine = ready
    ask(qtbot, window, "one")
    window.page.composer.edit.setPlainText("two")
    ctrl = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return, ctrl)
    qtbot.waitUntil(lambda: len(window.chat.answers) == 2 and not window.chat.is_busy)
    assert engine.of_kind(Generate)[-1].messages[-1].text == "two"
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return, ctrl)  # nothing to send
    assert len(engine.of_kind(Generate)) == 2
    QTest.keyClick(window, Qt.Key.Key_R, ctrl)
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) == 3 and not window.chat.is_busy)
    assert len(window.chat.answers) == 2


def test_the_panel_opens_by_key_and_button_and_is_remembered(
    qtbot: QtBot, ready: Ready, tmp_path: Path
) -> None:
    window, _ = ready
    assert not window.page.settings_panel.isVisible()
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window, Qt.Key.Key_P, keys)
    assert window.page.settings_panel.isVisible()
    assert window.page.header.panel_button.isChecked()
    assert '"shows_panel": true' in (tmp_path / "preferences.json").read_text()
    window.page.settings_panel.close_requested.emit()
    assert not window.page.settings_panel.isVisible()


def test_the_smallest_window_shows_all_of_header_and_strip_in_one_row(
    qtbot: QtBot, ready: Ready
) -> None:
    window, _ = ready
    page = window.page
    for zoom, has_panel in product((1.0, MAX_ZOOM), (False, True)):
        window.settings.set(zoom=zoom)
        page.show_panel(has_panel)
        window.resize(QSize(700, 500))
        qtbot.waitUntil(lambda: window.size() == QSize(700, 500) and page.width() == 700)
        qtbot.waitUntil(lambda: check_one_row(page))  # layouts follow a zoom in the next turn


def check_one_row(page: ChatPage) -> None:
    header = page.header
    shown = [header.model_button, header.drafter_box, header._new_button, header.panel_button]
    lefts = [place_in(header, widget).left() for widget in shown]
    assert lefts == sorted(lefts)
    for parent, widgets in ((header, shown), (page, (page.composer, page.strip))):
        for widget in widgets:
            assert parent.rect().contains(place_in(parent, widget)), widget.accessibleName()
    middle = header.rect().center().y()
    for widget in shown:
        assert abs(place_in(header, widget).center().y() - middle) < header.height() / 3


def place_in(parent: QWidget, widget: QWidget):
    return widget.rect().translated(widget.mapTo(parent, widget.rect().topLeft()))


def test_a_loading_text_of_any_length_moves_nothing_in_the_header(
    qtbot: QtBot, ready: Ready
) -> None:
    window, _ = ready
    header = window.page.header
    before = header.drafter_box.geometry()
    status = window.loaded_model.status
    header.show_status(replace(status, loaded=None, text="Reading the weights of block 31 " * 9))
    QApplication.processEvents()
    assert header.drafter_box.geometry() == before


def test_every_tooltip_of_header_strip_and_panel_wraps(seen: Seen) -> None:
    page = seen[0].page
    for part in (page.header, page.strip, page.settings_panel):
        for widget in (part, *part.findChildren(QWidget)):
            assert not widget.toolTip() or widget.toolTip().startswith("<qt>"), widget.toolTip()


# The strip ----------------------------------------------------------------------------------------


def test_the_strip_shows_speed_and_tokens_per_step_while_an_answer_streams(
    qtbot: QtBot, ready: Ready
) -> None:
    window, _ = ready
    ask(qtbot, window, "Hello")
    strip = window.page.strip
    assert strip.speed_label.text() == "900 tokens/s ·"  # 9 tokens in four steps of 2.5 ms
    assert strip.mean_label.text() == "2.25 tokens/step"
    assert strip.gain_label.isHidden()
    for label in (strip.speed_label, strip.mean_label, strip.gain_label):
        assert label.accessibleDescription().endswith(".")


def test_the_memory_of_the_device_is_shown_with_its_name(qtbot: QtBot, ready: Ready) -> None:
    from medusa_core.api import MemoryStatus

    window, _ = ready
    loaded = window.loaded_model.status.loaded
    text, meaning = memory_texts(
        MemoryStatus("Some Card", 6 * GIB, 8 * GIB), replace(loaded, device="cuda")
    )
    assert text == "GPU · 2.0 of 8.0 GiB free · Some Card"
    assert "Some Card" in meaning
    watch = MemoryWatch(
        window.page.strip, window.loaded_model, lambda _: MemoryStatus("Chip", GIB, 2 * GIB)
    )
    watch.look()
    qtbot.waitUntil(lambda: "1.0 of 2.0 GiB free · Chip" in window.page.strip.memory_label.text())


def test_unknown_memory_is_not_shown(qtbot: QtBot, ready: Ready) -> None:
    def fail(_: str):
        raise RuntimeError("the card is gone")

    window, _ = ready
    window.page.strip.show_memory("old", "old")
    watch = MemoryWatch(window.page.strip, window.loaded_model, fail)
    watch.look()
    qtbot.waitUntil(lambda: window.page.strip.memory_label.text() == "")


def test_a_new_chat_begins_with_the_makers_recommended_sampling(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready(Script(advice=Advice(0.6, 20, 0.95)))
    panel = window.page.settings_panel
    assert panel.presets.box.currentText() == "Recommended"
    ask(qtbot, window, "Hello")
    answered = window.chat.conversation.turns[-1].answer
    assert (answered.settings.rule, answered.settings.top_k) == ("sample", 20)
    panel.choose_rule("greedy")
    assert window.loaded_model.status.loaded is not None
    panel.offer(window.loaded_model.status.loaded)
    assert panel.settings().rule == "greedy", "what was chosen stays, whatever model comes"
    window.chat.new_chat()
    assert panel.settings().rule == "sample"


def test_the_fastest_drafter_of_this_computer_is_the_default_and_says_why(
    qtbot: QtBot, ready: Ready
) -> None:
    window, _ = ready
    status = window.loaded_model.status
    assert status.loaded is not None
    medusa, none = status.loaded.drafters
    panel, header = window.page.settings_panel, window.page.header
    assert "measured" not in header.drafter_box.toolTip()
    speeds = (DrafterSpeed("none", 1.0, 9.0, 1.0, 0.0), DrafterSpeed("medusa", 3.14, 8.0, 0.9, 0.2))
    window.page.offer(replace(status.loaded, drafters=(none, medusa), speeds=speeds))
    assert panel.drafter == none
    assert "1.0 tokens per step, 1.0 × plain" in panel.groups["Speed-up"].note
    assert "The fastest here." in panel.groups["Speed-up"].note
    assert "The fastest here." in header.drafter_box.toolTip()
    panel.choose_drafter("medusa")
    assert "3.1 tokens per step, 0.9 × plain" in panel.groups["Speed-up"].note
    assert "The fastest here." not in panel.groups["Speed-up"].note
    assert requested(qtbot, ready).settings.drafter == "medusa"
    window.chat.new_chat()
    assert panel.drafter == medusa, "it stands in the header, above all chats"


def test_lists_of_drafters_say_how_fast_each_was_here(ready: Ready) -> None:
    window, _ = ready
    status = window.loaded_model.status
    assert status.loaded is not None
    speeds = (DrafterSpeed("medusa", 3.14, 8.0, 0.9, 0.2), DrafterSpeed("none", 1.0, 9.0, 1.0, 0.0))
    window.page.offer(replace(status.loaded, speeds=speeds))
    for box in (window.page.header.drafter_box, window.page.settings_panel.drafter_box):
        rows = {}
        for place in range(box.count()):
            option, index = QStyleOptionViewItem(), box.model().index(place, 0)
            box.itemDelegate().initStyleOption(option, index)  # type: ignore[attr-defined]
            rows[box.itemData(place)] = option.text.partition(" · ")[2]
        assert rows == {
            "medusa": "3.1 tokens/step, 0.9×",
            "none": "1.0 tokens/step, 1.0× · fastest here",
        }


def test_reasoning_can_be_switched_if_the_model_supports_it(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(thinking=ThinkingSwitch(True, True, True), answer=THOUGHT))
    window.page.show_panel(True)
    box = window.page.settings_panel.thinks_box
    assert box.isVisible()
    ask(qtbot, window, "Hello")
    message = window.chat.answers[-1]
    assert message.fold is not None
    assert message.fold.document.text.startswith("Let me see")
    assert message.view.toPlainText() == "Four."
    box.setCurrentIndex(2)
    box.activated.emit(2)
    ask(qtbot, window, "Again")
    command = engine.of_kind(Generate)[-1]
    assert isinstance(command, Generate)
    assert command.settings.thinks is False
    assert command.messages[1].text == "Four.", "what was thought isn't sent back"


def test_the_growth_of_drafts_is_set_per_conversation(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    window.page.show_panel(True)
    panel = window.page.settings_panel
    assert not panel.thinks_box.isVisible(), "this model has no such switch"
    assert requested(qtbot, (window, engine)).settings.growth == "auto"
    box = panel.growth_box
    box.setCurrentIndex(box.findData("chain"))
    box.activated.emit(box.currentIndex())
    assert requested(qtbot, (window, engine)).settings.growth == "chain"
    panel.choose_drafter("none")
    assert not box.isEnabled()


def test_a_base_model_continues_the_text_as_it_was_typed(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(continues_text=True))
    assert window.page.composer.edit.placeholderText() == "Continues your text"
    assert requested(qtbot, (window, engine), "Once upon a ").messages[-1].text == "Once upon a "


def test_a_chat_models_prompt_is_stripped_of_surrounding_spaces(qtbot: QtBot, ready: Ready) -> None:
    assert ready[0].page.composer.edit.placeholderText() == "Ask something…"
    assert requested(qtbot, ready, " Hello ").messages[-1].text == "Hello"
