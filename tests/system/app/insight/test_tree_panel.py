"""The panel "Visualize tree" in the real window, with an engine that follows a script."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.insight.layout import NodeState
from app.insight.tree_panel import PLAN, STEP
from app.window.main_window import MainWindow
from medusa_core.messages import Generate, GenerateSettings
from tests.support.window.driving import ask
from tests.support.window.fakes import Script, plan_of
from tests.support.window.fixtures import Open
from tests.support.window.looks import open_step, shown
from tests.support.window.traces import made_track


def test_before_any_answer_the_planned_tree_can_be_sized_and_used(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    QTest.keyClick(window, Qt.Key.Key_F9)
    panel = window.insight.tree
    assert panel is not None
    assert panel.tabs.currentIndex() == PLAN
    assert len(panel.view.layout_shown.nodes) == 8  # the engine's choice
    assert "the engine's choice" in panel.plan.text
    panel.plan.slider.setFocus()
    QTest.keyClick(panel.plan.slider, Qt.Key.Key_Right)
    assert len(panel.view.layout_shown.nodes) == 9
    assert panel.plan.text.startswith("9 rows · expected 2.")
    assert "× plain" in panel.plan.text
    panel.plan.use_box.click()
    ask(qtbot, window, "Hello")
    request = engine.of_kind(Generate)[0]
    assert isinstance(request, Generate)
    assert request.settings.tree_rows == 9
    panel.plan.use_box.click()
    assert window.chat.tree_rows == 0


def test_the_planned_tree_follows_learned_rates_until_the_user_chooses(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(Script(learned_rows=5))
    panel = window.insight.open_tree()
    assert panel.plan.text.startswith("8 rows")
    ask(qtbot, window, "Hello")
    qtbot.waitUntil(lambda: panel.plan.slider.value() == 5)
    assert "the engine's choice" in panel.plan.text
    panel.tabs.setCurrentIndex(PLAN)
    assert len(panel.view.layout_shown.nodes) == 5
    panel.plan.slider.setValue(9)
    engine.script = replace(engine.script, learned_rows=6)
    ask(qtbot, window, "More")
    qtbot.waitUntil(lambda: window.loaded_model.status.planned.tree_rows == 6)
    assert panel.plan.slider.value() == 9


def test_a_chosen_tree_size_is_kept_although_another_is_learned(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready(Script(learned_rows=5))
    panel = window.insight.open_tree()
    panel.plan.use_box.click()
    for _ in range(2):
        ask(qtbot, window, "Hello")
        qtbot.waitUntil(lambda: "engine's choice" not in panel.plan.text)
    rows = [r.settings.tree_rows for r in engine.of_kind(Generate) if isinstance(r, Generate)]
    assert rows == [8, 8]


def test_a_model_without_heads_has_no_planned_tree_to_use(open_ready: Open) -> None:
    window, _ = open_ready()
    plan, chat = window.insight.open_tree().plan, window.chat
    plan.use_box.click()
    assert chat.tree_rows == 8
    headless = replace(plan_of(Generate("", "", (), GenerateSettings())), best_nodes=())
    plan.show_plan(headless, 0.001)
    assert chat.tree_rows == 0  # else no source could draft
    assert not plan.use_box.isEnabled()
    assert plan.text == "no tree is planned ahead: each step grows its own"


def test_f9_opens_and_closes_the_tree(answered: tuple[MainWindow, AnswerMessage]) -> None:
    window, _ = answered
    QTest.keyClick(window, Qt.Key.Key_F9)
    panel = window.insight.tree
    assert panel is not None
    assert panel.isVisible()
    assert panel.tabs.currentIndex() == STEP
    assert panel.view.layout_shown.nodes
    QTest.keyClick(window, Qt.Key.Key_F9)
    assert not panel.isVisible()


def test_the_tree_tab_changes_once_an_answer_begins(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    panel = window.insight.open_tree()
    window.insight.timeline.show(made_track(3))
    assert panel.tabs.currentIndex() == PLAN, "turning it would slow the answer's beginning"
    qtbot.waitUntil(lambda: panel.tabs.currentIndex() == STEP)
    qtbot.waitUntil(lambda: bool(panel.view.layout_shown.nodes))
    window.insight.timeline.show(None, 0)
    assert panel.tabs.currentIndex() == PLAN, "what isn't followed is shown at once"


def test_the_slider_shows_every_step(answered: tuple[MainWindow, AnswerMessage]) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    panel.tabs.setCurrentIndex(STEP)
    slider = panel.transport.slider
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Home)
    assert shown(panel) == ["root", "One"]  # prefill: the root and the model's choice
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert shown(panel) == ["One", "␣two", "␣three.", "␣wrong", "␣Four"]
    states = [node.state for node in panel.view.layout_shown.nodes]
    assert states == [
        NodeState.ROOT, NodeState.ACCEPTED, NodeState.ACCEPTED, NodeState.MISMATCH, NodeState.GHOST,
    ]  # fmt: skip
    assert panel.transport.text == "step 1 of 4: 3 tokens (2 accepted + 1 of the model's own)"
    QTest.keyClick(slider, Qt.Key.Key_End)
    assert "step 4 of 4" in panel.transport.text


def test_arrow_keys_move_through_the_tree_and_announce_the_node(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    panel = open_step(window, 1)
    view = panel.view
    view.setFocus()
    output = []
    keys = (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right)
    for key in (*keys, Qt.Key.Key_Down, Qt.Key.Key_Left):
        QTest.keyClick(view, key)
        output.append(view.accessibleDescription())
    assert output == [
        "One: decided before",
        "two: accepted, from head 1, 25.0 %; the model gave it 50.0 %",
        "three.: accepted, from head 2, 25.0 %; the model gave it 50.0 %",
        "wrong: the best draft token where the model chose otherwise, from head 3, 25.0 %",
        "Four: chosen by the model, 50.0 %",
        "three.: accepted, from head 2, 25.0 %; the model gave it 50.0 %",
    ]


def test_the_table_lists_the_nodes_and_shares_the_selection(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    panel = open_step(window, 1)
    panel.table_button.click()
    rows = [[panel.table.item(r, c).text() for c in range(9)] for r in range(5)]
    assert rows[1] == ["1", "1", "␣two", "head 1", "1", "25.0 %", "50.0 %", "accepted", "One"]
    assert rows[4][5:7] == ["—", "50.0 %"], "the model's own was drafted by nobody"
    assert rows[4][2:4] == ["␣Four", "the model itself"]
    panel.table.selectRow(2)
    assert panel.view.chosen == 2


def test_the_tree_is_zoomed_by_key_and_fitted_again(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    view = window.insight.open_tree().view
    view.setFocus()
    before = view.transform().m11()
    for key, grows in (
        (Qt.Key.Key_Plus, True),
        (Qt.Key.Key_Equal, True),
        (Qt.Key.Key_Minus, False),
    ):
        QTest.keyClick(view, key)
        assert (view.transform().m11() > before) == grows
        QTest.keyClick(view, Qt.Key.Key_0)
        assert view.transform().m11() == pytest.approx(before)
