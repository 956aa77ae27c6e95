"""The curves over all steps."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.insight.track import Track
from app.insight.tree_panel import PLAN, STEP
from app.window.main_window import MainWindow
from tests.support.window.traces import done_after, trace


def test_curves_show_the_traces_and_share_the_slider(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_steps()
    qtbot.waitUntil(lambda: len(panel.figures) == 4)
    assert panel.figures.tokens.tolist() == [3, 1, 2, 3]
    assert panel.facts.text().startswith("τ 2.25 tokens/step over 4 steps")
    assert "1.80× plain" in panel.facts.text()
    window.insight.timeline.go(2)
    over_time = panel._over_time
    assert [plot.marker.value() for plot in over_time] == [2] * 4
    over_time[0].marker.setValue(4)
    over_time[0].marker.sigDragged.emit(over_time[0].marker)
    assert window.insight.timeline.index == 4
    assert [plot.accessibleDescription() for plot in over_time] == [
        "step 4: 3, 2 of them accepted",
        "step 4: draft 100 µs, verify 2.00 ms, accept 100 µs, commit 100 µs",
        "step 4: 800",
        "step 4: 5.00",
    ]
    mean = round(panel.figures.rows.mean())
    assert mean > 1
    costs = panel.plots[-1]  # drawn in a turn of its own
    qtbot.waitUntil(lambda: costs.accessibleDescription().startswith(f"{mean} rows take "))
    QTest.keyClick(over_time[1], Qt.Key.Key_Left)
    assert window.insight.timeline.index == 3
    QTest.keyClick(over_time[3], Qt.Key.Key_Home)
    assert window.insight.timeline.index == 0
    qtbot.waitUntil(lambda: all(plot.updatesEnabled() for plot in panel.plots))  # and painted
    for plot in panel.plots:
        assert plot.accessibleName()
        assert plot.toolTip()


def test_an_answer_of_another_model_is_not_compared_with_this_one(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_steps()
    track = Track("other", "Another", "greedy")
    for number in range(4):
        track.add(trace(number))
    window.insight.timeline.show(track, 1)
    qtbot.waitUntil(lambda: "Another" in panel.facts.text())
    assert "plain" not in panel.facts.text()
    assert "MiB" not in panel.facts.text()
    memory = panel._over_time[3]
    qtbot.waitUntil(lambda: memory.accessibleDescription() == "step 1: not known")


def test_moving_through_ten_thousand_steps_doesnt_redraw_curves(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    track = Track("long", "Fake", "greedy")
    for number in range(10_000):
        track.add(trace(number))
    track.done = done_after([track[1]])
    insight = window.insight
    insight.recordings.put(track)
    tree, steps = insight.open_tree(), insight.open_steps()
    insight.timeline.show(track, 0)
    qtbot.waitUntil(lambda: len(steps.figures) == 9_999 and not steps._turn.isActive())
    for place in (9_999, 5_000):
        insight.timeline.go(place)
        assert f"step {place:,} of 9,999" in steps._transport.text
        assert not steps._timer.isActive()
        assert not steps._turn.isActive()
    insight.open_tree()
    insight.timeline.go(9_999)
    assert "step 9,999 of 9,999" in tree.transport.text


def test_every_chart_describes_itself_to_screen_readers(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_steps()
    qtbot.waitUntil(lambda: len(panel.figures) == 4)
    qtbot.waitUntil(lambda: all(plot.accessibleDescription() for plot in panel.plots))
    tree = window.insight.open_tree()
    reported = ("h1: drafted by a Medusa head", "a row of the tree")
    for tab in (STEP, PLAN):
        tree.tabs.setCurrentIndex(tab)
        (seen,) = (legend for legend in tree.legends if legend.isVisible())
        assert reported[tab] in seen.accessibleDescription()
    tree.table_button.setChecked(True)
    assert not any(legend.isVisible() for legend in tree.legends)
