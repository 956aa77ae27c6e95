"""The real window with the real engine on the embedded model."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.messages.message_widgets import Notice
from app.chat.suggestions import DEMO
from app.insight.token_card import card_of
from app.window.main_window import MainWindow
from medusa_core.api import start_engine
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    TARGET,
    Cancel,
    ChatMessage,
    GenerateSettings,
    Role,
    StepDone,
    StopReason,
)
from tests.support.window.driving import TIMEOUT_MS, ask, errors, figure_texts
from tests.support.window.engine_events import LEGEND
from tests.support.window.fixtures import OpenWindow, lasting_window
from tests.support.window.shared_engine import SharedEngine, engine

__all__ = ["engine"]

# The embedded model tells at some length here.
STORY = DEMO[0]


@pytest.fixture(scope="module")
def opened(
    qapp: QApplication,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    engine: SharedEngine,
) -> Iterator[MainWindow]:
    """The window of all tests of this module but one."""
    with lasting_window(request, tmp_path_factory.mktemp("window"), engine.start) as window:
        yield window


@pytest.fixture
def slow_engine(engine: SharedEngine) -> Iterator[SharedEngine]:
    """Slow down the engine."""
    engine.pause_s = 0.003
    yield engine
    engine.pause_s = 0.0


@pytest.fixture
def window(opened: MainWindow) -> MainWindow:
    """The window with a new chat, whose settings are those at the start."""
    panel = opened.page.settings_panel
    panel.choose_drafter(panel.drafters[0].name)
    opened.insight.docks.hide_all()
    opened.chat.new_chat()
    opened.page.composer.edit.clear()
    return opened


def test_the_built_in_model_is_ready_and_named(window: MainWindow) -> None:
    loaded = window.loaded_model.status.loaded
    assert loaded is not None
    assert loaded.num_heads >= 3
    assert window.page.header.model_button.text() == "Llama-Pebble · small built-in demo"
    assert re.search(r"\d heads", window.page.header.state_label.text())
    assert {choice.name for choice in loaded.drafters} >= {"medusa", "none"}
    assert window.page.settings_panel.generate_settings().drafter == loaded.drafters[0].name
    assert {choice.name for choice in loaded.rules} >= {"greedy", "sample"}


def test_an_answer_streams_with_the_marks_of_its_steps(
    qtbot: QtBot, window: MainWindow, slow_engine: SharedEngine
) -> None:
    lengths: set[int] = set()

    def has_ended() -> bool:
        if window.chat.is_busy:
            lengths.add(len(answer.content.text))
        return not window.chat.is_busy

    window.chat.send(STORY)
    answer = window.chat.answers[-1]
    qtbot.waitUntil(has_ended, timeout=TIMEOUT_MS)
    assert answer.done is not None
    assert answer.done.text == answer.content.text != ""
    # It grew on the screen before it was complete.
    assert any(0 < length < len(answer.done.text) for length in lengths)
    steps = [
        event
        for event in slow_engine.events
        if isinstance(event, StepDone) and event.request_id == answer.done.request_id
    ]
    sources = [source for step in steps for source in step.sources]
    pieces = [piece for step in steps for piece in step.pieces]
    accepted = {index for index, source in enumerate(sources) if source != TARGET}
    assert len(accepted) == answer.content.num_accepted > 0
    marked = {mark.token_index for mark in answer.marked_ranges()}
    assert marked <= accepted
    assert {index for index in accepted if pieces[index].strip().isalnum()} <= marked
    assert window.page.strip.tally.num_steps == answer.done.num_steps
    assert all("—" not in text for text in figure_texts(answer))


def test_escape_stops_an_answer_in_prefill(qtbot: QtBot, window: MainWindow) -> None:
    window.chat.send("Read this. " * 150)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
    answer = window.chat.answers[-1]
    assert answer.done is not None
    assert answer.done.stop_reason is StopReason.CANCELLED
    assert answer.done.num_steps == 0
    assert ask(qtbot, window, "Who are you?").content.text


@pytest.mark.usefixtures("slow_engine")
def test_escape_stops_an_answer_in_decode_and_keeps_its_text(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.chat.send(STORY)
    answer = window.chat.answers[-1]
    qtbot.waitUntil(lambda: bool(answer.content.text), timeout=TIMEOUT_MS)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
    assert answer.done is not None
    assert answer.done.stop_reason is StopReason.CANCELLED
    assert answer.done.text == answer.content.text != ""
    assert window.chat.conversation.messages()[0] == ChatMessage(Role.USER, STORY)
    # The conversation goes on from the text that was kept.
    assert ask(qtbot, window, "Go on.").done is not None
    assert window.chat.conversation.messages()[1].text == answer.done.text


def test_rule_and_drafter_can_be_switched_between_answers(qtbot: QtBot, window: MainWindow) -> None:
    pickers = window.page.settings_panel
    pickers.choose_rule("sample")
    used: list[GenerateSettings] = []
    for drafter in ("medusa", "none"):
        pickers.choose_drafter(drafter)
        answer = ask(qtbot, window, "What is the capital of France?")
        assert answer.done is not None
        used.append(answer.done.settings)
        assert (answer.content.num_accepted == 0) or drafter == "medusa"
    pickers.choose_rule("greedy")
    last = ask(qtbot, window, "Who are you?").done
    assert last is not None
    used.append(last.settings)
    assert [(s.drafter, s.rule) for s in used] == [
        ("medusa", "sample"),
        ("none", "sample"),
        ("none", "greedy"),
    ]


def test_a_prompt_longer_than_the_context_is_refused_and_restored(
    qtbot: QtBot, window: MainWindow
) -> None:
    prompt = "Please remember this. " * 600
    window.chat.send(prompt)
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
    assert window.page.composer.edit.toPlainText() == prompt.strip()
    (card,) = errors(window)
    assert card.message
    assert card.hint
    assert window.chat.answers == ()
    window.page.composer.edit.clear()
    assert ask(qtbot, window, "Who are you?").content.text


@pytest.mark.expects_errors
def test_a_broken_model_is_explained_and_the_window_keeps_working(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    opened = open_window(start_engine, (tmp_path / "nothing", None))
    qtbot.waitUntil(lambda: opened.loaded_model.status.phase is Phase.FAILED, timeout=TIMEOUT_MS)
    (card,) = errors(opened)
    assert card.message
    assert opened.page.header.state_label.text() == "could not be loaded"
    # A prompt that is sent nevertheless comes back.
    opened.chat.send("Anyone?")
    qtbot.waitUntil(lambda: not opened.chat.is_busy, timeout=TIMEOUT_MS)
    assert opened.page.composer.edit.toPlainText() == "Anyone?"


def test_stopping_twice_or_without_an_answer_has_no_effect(
    qtbot: QtBot, window: MainWindow, engine: SharedEngine
) -> None:
    window.chat.stop()
    window.chat.send(STORY)
    window.chat.stop()
    window.chat.stop()
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
    engine.submit(Cancel("no", "such"))
    assert ask(qtbot, window, "Who are you?").content.text


def test_a_models_own_answer_is_an_equilibrium_until_a_token_is_changed(
    qtbot: QtBot, window: MainWindow
) -> None:
    answer = ask(qtbot, window, STORY)
    assert answer.done is not None
    panel = window.insight.open_equilibrium()
    qtbot.waitUntil(lambda: bool(panel.shown.cells), timeout=TIMEOUT_MS)
    written = [i for i in answer.done.token_ids if i != 1]  # EOS isn't read again
    cells = panel.shown.cells
    assert [cell.token_id for cell in cells[-len(written) :]] == written
    first = len(cells) - len(written)
    assert {cell.mark for cell in cells[first - 1 : -1]} == {"✓"}
    assert {cell.mark for cell in cells[: first - 1]} == {"·"}, "nobody asked for the question"
    assert (panel.shown.num_agreeing, panel.shown.num_judged) == (len(written), len(written))
    panel.replace(first + 20, " mountain")
    qtbot.waitUntil(lambda: panel.shown.bonus is not None, timeout=TIMEOUT_MS)
    assert panel.shown.bonus == first + 19
    assert panel.shown.cells[first + 19].output == cells[first + 20].text


def test_compared_side_by_side_medusa_writes_the_text_of_plain_decoding(
    qtbot: QtBot, window: MainWindow
) -> None:
    dialog = window.insight.open_compare()
    dialog.edit.setText(STORY)
    dialog.start()
    qtbot.waitUntil(lambda: bool(dialog.verdict), timeout=TIMEOUT_MS)
    plain, medusa = dialog.sides
    assert plain.done is not None
    assert medusa.done is not None
    assert (plain.done.settings.drafter, medusa.done.settings.drafter) == (
        "none",
        "composite",
    )
    assert dialog.verdict.startswith("✓ The same")
    assert plain.done.num_steps > medusa.done.num_steps
    assert plain.clock_s > 0
    assert medusa.clock_s > 0


def test_every_token_of_an_answer_has_a_card(qtbot: QtBot, window: MainWindow) -> None:
    window.page.settings_panel.choose_rule("sample")
    answer = ask(qtbot, window, STORY)
    assert answer.done is not None
    track = window.insight.recordings.tracks[answer.request_id]
    assert track.num_tokens == len(answer.done.token_ids)
    for token, token_id in enumerate(answer.done.token_ids):
        lines = dict(card_of(track, token, LEGEND))
        assert lines["Id"] == str(token_id)
        assert "Noise drawn at this place" in lines
        assert lines["Rule"].startswith("Sample")
    window.page.settings_panel.choose_rule("greedy")


def test_a_chat_longer_than_the_context_continues_and_says_what_is_omitted(
    qtbot: QtBot, window: MainWindow
) -> None:
    """Where a full context was a dead end, "hello there" is answered, however long the chat is."""
    page = window.page
    page.settings_panel.choose_number("max_new_tokens", 16)
    long = "a fox and a bear walk through the forest and talk " * 18
    for number in range(6):
        window.chat.send(f"{number} {long}")
        qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
        assert not errors(window)
    notices = [m.text for m in page.conversation.messages if isinstance(m, Notice)]
    assert any("no longer reads" in text for text in notices)
    page.composer.edit.setPlainText("hello there")
    qtbot.waitUntil(lambda: "earlier messages don't fit" in page.context_label.text())
    answer = ask(qtbot, window, "")
    assert answer.content.text
    assert len(window.chat.answers) == 7  # nothing of the chat itself is gone


def test_a_system_prompt_is_read_and_counted_before_it_is_sent(
    qtbot: QtBot, window: MainWindow
) -> None:
    page = window.page
    page.composer.edit.setPlainText("Hello")
    qtbot.waitUntil(lambda: page.context_label.text().endswith("of 1,024 tokens"))
    before = int(page.context_label.text().split()[0])
    page.settings_panel.groups["Template"].heading.click()
    page.settings_panel.system_edit.setPlainText("You are a pirate.")
    preview = page.settings_panel.template.text
    qtbot.waitUntil(lambda: "You are a pirate." in preview.toPlainText(), timeout=TIMEOUT_MS)
    counted = int(page.context_label.text().split()[0])
    assert counted > before
    answer = ask(qtbot, window, "")
    assert answer.done is not None
    assert answer.done.num_prompt_tokens == counted


def test_the_strip_says_that_the_demo_model_is_too_small_to_gain(
    qtbot: QtBot, window: MainWindow
) -> None:
    strip = window.page.strip
    assert strip.gain_label.isVisible()
    assert strip.gain_label.text() == "· Fast even without drafts"
    answer = ask(qtbot, window, "Hello!")
    assert not any("× plain" in text for text in figure_texts(answer))
    assert strip.mean_label.text().endswith("tokens/step")
    qtbot.waitUntil(lambda: "GiB free" in strip.memory_label.text(), timeout=TIMEOUT_MS)


def test_a_seed_repeats_an_answer_and_the_token_limit_ends_it(
    qtbot: QtBot, window: MainWindow
) -> None:
    settings_panel = window.page.settings_panel
    settings_panel.choose_rule("sample")
    settings_panel.choose_number("max_new_tokens", 24)
    QTest.keyClicks(settings_panel.seed_box, "7")
    first = ask(qtbot, window, STORY)
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=TIMEOUT_MS)
    again = window.chat.answers[-1]
    assert again.content.text == first.content.text
    assert again.done is not None
    assert again.done.stop_reason is StopReason.MAX_TOKENS
    assert len(again.done.token_ids) == 24
