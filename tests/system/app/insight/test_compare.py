"""The same prompt by two modes, side by side."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QToolTip,
)
from pytestqt.qtbot import QtBot

from app.insight.compare import verdict
from app.theme.text_style import Marking
from medusa_core.messages import (
    Cancel,
    CloseSession,
    Generate,
    GenerationDone,
)
from tests.support.messages import EXAMPLES
from tests.support.window.driving import errors
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open
from tests.support.window.looks import framed, track_of


def test_compare_answers_in_two_modes_side_by_side(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    dialog = window.insight.open_compare()
    QTest.keyClicks(dialog.edit, "Hello")
    QTest.keyClick(dialog.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not dialog.is_running and bool(dialog.verdict))
    left, right = (r for r in engine.of_kind(Generate) if isinstance(r, Generate))
    assert (left.settings.drafter, right.settings.drafter) == ("none", "medusa")
    assert left.settings.seed == right.settings.seed
    assert left.session_id != right.session_id
    assert dialog.verdict.startswith("✓ The same 10 tokens")
    assert [side.num_tokens for side in dialog.sides] == [10, 10]
    assert dialog.sides[0].clock_s == pytest.approx(0.025)
    assert dialog.sides[1].clock_s == pytest.approx(0.0125)
    assert len(engine.of_kind(CloseSession)) == 2
    assert window.insight.timeline.track is None  # the panels stay with the chat
    assert [answer._speaker.text() for answer in dialog.answers] == [
        "None (plain) · Greedy",
        "Medusa heads · Greedy",
    ]


def test_rows_can_be_chosen_for_trees_and_are_in_the_title(open_ready: Open) -> None:
    window, _ = open_ready()
    left, right = window.insight.open_compare().sides
    assert (left.rows_box.isEnabled(), right.rows_box.isEnabled()) == (False, True)
    for side in (left, right):
        side.rows_box.setCurrentIndex(side.rows_box.findData(8))
    assert (left.settings(1, 0.7).tree_rows, right.settings(1, 0.7).tree_rows) == (0, 8)
    assert (left.mode, right.mode) == ("None (plain) · Greedy", "Medusa heads · Greedy · 8 rows")
    left.choose_drafter("medusa")
    assert left.settings(1, 0.7).tree_rows == 8
    window.loaded_model.changed.emit()
    assert left.drafter_box.currentData() == "medusa", "what the user chose stays"


def test_tokens_of_a_comparison_have_cards_steps_and_marks(
    qtbot: QtBot, open_ready: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, engine = open_ready()
    window.settings.set(marking=Marking.ACCEPTED.value)
    dialog = window.insight.open_compare()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: bool(dialog.verdict))
    assert all(r.records for r in engine.of_kind(Generate) if isinstance(r, Generate))
    plain, medusa = dialog.answers
    assert {answer.document.style.marking for answer in dialog.answers} == {Marking.ACCEPTED}
    window.settings.set(marking=Marking.OFF.value)
    assert {answer.document.style.marking for answer in dialog.answers} == {Marking.OFF}
    cards: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, html, _view: cards.append(html))
    medusa.token_hovered.emit(1)
    plain.token_hovered.emit(1)
    assert "head 1, accepted" in cards[0]
    assert "the model itself" in cards[1]
    medusa.token_pressed.emit(2)
    assert track_of(window).request_id == medusa.request_id
    assert window.insight.timeline.index == 1
    assert "".join(framed(medusa)) == " two three. Four"
    plain.token_pressed.emit(2)
    assert (framed(medusa), "".join(framed(plain))) == ([], " three.")
    reroll = next(a for a in medusa.menu_at(0).actions() if a.text() == "Reroll from here")
    assert not reroll.isEnabled()


def test_without_recording_a_comparison_has_no_steps(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    dialog = window.insight.open_compare()
    window.page.header.record_action.trigger()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: bool(dialog.verdict))
    assert not any(r.records for r in engine.of_kind(Generate) if isinstance(r, Generate))
    assert window.insight.recordings.tracks == {}


def test_a_comparison_uses_the_headers_temperature_and_remembers_its_choice(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(num_before_gate=2)
    window.page.settings_panel.choose_number("temperature", 1.3)
    dialog = window.insight.open_compare()
    for side in dialog.sides:
        side.rule_box.setCurrentIndex(side.rule_box.findData("typical"))
    dialog.edit.setText("Hello")
    engine.gate.clear()
    dialog.start()
    assert not any(side.rule_box.isEnabled() for side in dialog.sides)
    engine.gate.set()
    qtbot.waitUntil(lambda: bool(dialog.verdict))
    assert all(side.rule_box.isEnabled() for side in dialog.sides)
    requested = [r.settings for r in engine.of_kind(Generate) if isinstance(r, Generate)]
    assert {settings.temperature for settings in requested} == {1.3}
    assert dialog.verdict.startswith("Under this rule drafts change the text")


@pytest.mark.parametrize(
    ("left_s", "words"),
    [
        (1.0, " Both sides decoded equally fast."),
        (1.004, " Both sides decoded equally fast."),
        (2.0, " The right side decoded 2.00× faster."),
        (0.5, " The left side decoded 2.00× faster."),
    ],
)
def test_the_faster_side_is_named_unless_both_are_equally_fast(left_s: float, words: str) -> None:
    right = next(one for one in EXAMPLES if isinstance(one, GenerationDone))
    right = replace(right, accept_lengths=(2, 2), decode_s=1.0)
    assert verdict(replace(right, decode_s=left_s), right, is_exact=True).endswith(words)


@pytest.mark.parametrize("by_key", [False, True])
def test_different_rules_are_not_compared_and_closing_stops_a_comparison(
    by_key: bool, qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(num_before_gate=2)
    dialog = window.insight.open_compare()
    dialog.sides[1].rule_box.setCurrentIndex(1)
    dialog.edit.setText("Hello")
    engine.gate.clear()
    dialog.start()
    qtbot.waitUntil(lambda: dialog.sides[0].num_tokens > 0)
    if by_key:
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    else:
        dialog.close()
    assert not dialog.isVisible()
    qtbot.waitUntil(lambda: not dialog.is_running)
    assert len(engine.of_kind(Cancel)) == 2
    assert dialog.verdict.startswith("Different rules")


def test_a_side_that_fails_says_why(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready(Script(decode_error="It broke."))
    dialog = window.insight.open_compare()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: not dialog.is_running)
    assert dialog.verdict.count("It broke.") == 1, "both failed alike"
    assert errors(window) == []


def test_a_closed_window_ends_its_comparison(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    name = window.insight.open_compare().objectName()
    assert name in [widget.objectName() for widget in QApplication.topLevelWidgets()]
    window.close()
    qtbot.waitUntil(
        lambda: name not in [widget.objectName() for widget in QApplication.topLevelWidgets()]
    )
