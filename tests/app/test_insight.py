"""The panels in the real window, with an engine that follows a script."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QImage, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QComboBox,
    QGraphicsView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QScrollBar,
    QTabBar,
    QToolTip,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chat.answer_message import AnswerMessage
from app.insight import trace_files
from app.insight.agreement import agreement
from app.insight.layout import State
from app.insight.trace_files import LOADED
from app.insight.track import Track
from app.insight.tree_panel import PLAN, STEP, TreePanel
from app.insight.wing import FORGET_MS, NOT_RECORDED
from app.markdown.formats import Marking
from app.model_keeper import Phase
from app.window import MainWindow
from medusa_core.messages import (
    TARGET,
    Alternative,
    Cancel,
    CloseSession,
    Generate,
    LoadModel,
    StepDone,
    StepTimes,
    Verified,
    VerifiedToken,
    Verify,
)
from tests.app.conftest import Opened
from tests.app.fakes import Script
from tests.app.test_chat_window import ask, errors, wait_ready
from tests.app.traces import done_after, trace

Open = Callable[..., Opened]
PREFILL = StepDone(
    "s", "r", 0, (1,), (b"a",), (TARGET,), 1, 1, (TARGET,), StepTimes(0, 0, 0, 0), 0, 2
)
LONG = " ".join(f"word{number}" for number in range(80))


@pytest.fixture
def answered(qtbot: QtBot, open_fake: Open) -> tuple[MainWindow, AnswerMessage]:
    """A window with one answer."""
    window, _ = open_fake()
    wait_ready(qtbot, window)
    return window, ask(qtbot, window, "Hello")


def track_of(window: MainWindow) -> Track:
    track = window.insight.timeline.track
    assert track is not None
    return track


def shown(panel: TreePanel) -> list[str]:
    return [node.text for node in panel.view.layout_shown.nodes]


# Recording ----------------------------------------------------------------------------------------


def test_an_answer_is_recorded_step_by_step(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    track = track_of(window)
    assert track.request_id == answer.request_id
    assert track.done == answer.done
    assert track.num_tokens == answer.document.num_tokens == 10
    assert len(track) == 5


def test_steps_of_an_answer_that_was_taken_back_are_not_recorded(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    session = window.chat.conversation.session_id
    window.insight._receive((replace(PREFILL, session_id=session, request_id="gone"),))
    assert track_of(window).request_id == answer.request_id


def test_recording_can_be_switched_off_and_stays_off(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    window.page.header.record_action.trigger()
    ask(qtbot, window, "Hello")
    (request,) = engine.of_kind(Generate)
    assert isinstance(request, Generate)
    assert not request.records
    assert window.insight.timeline.track is None
    assert not window._preferences.records


# The tree -----------------------------------------------------------------------------------------


def test_before_any_answer_the_planned_tree_can_be_sized_and_used(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
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


def test_the_planned_tree_follows_what_is_learned_until_the_user_chooses(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, _ = open_fake(Script(learned_rows=5))
    wait_ready(qtbot, window)
    panel = window.insight.open_tree()
    assert panel.plan.text.startswith("8 rows")
    ask(qtbot, window, "Hello")
    qtbot.waitUntil(lambda: panel.plan.slider.value() == 5)
    assert "the engine's choice" in panel.plan.text
    panel.tabs.setCurrentIndex(PLAN)
    assert len(panel.view.layout_shown.nodes) == 5
    panel.plan.slider.setValue(9)
    ask(qtbot, window, "More")
    qtbot.wait(50)
    assert panel.plan.slider.value() == 9


def test_a_size_that_is_used_stays_although_another_is_learned(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(Script(learned_rows=5))
    wait_ready(qtbot, window)
    panel = window.insight.open_tree()
    panel.plan.use_box.click()
    for _ in range(2):
        ask(qtbot, window, "Hello")
        qtbot.waitUntil(lambda: "engine's choice" not in panel.plan.text)
    rows = [r.settings.tree_rows for r in engine.of_kind(Generate) if isinstance(r, Generate)]
    assert rows == [8, 8]


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
        State.ROOT, State.ACCEPTED, State.ACCEPTED, State.MISMATCH, State.GHOST,
    ]  # fmt: skip
    assert panel.transport.text == "step 1 of 4: 3 tokens (2 accepted + 1 of the model's own)"
    QTest.keyClick(slider, Qt.Key.Key_End)
    assert "step 4 of 4" in panel.transport.text


def test_steps_are_played_and_paused(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    timeline = window.insight.timeline
    panel.transport.play_button.click()
    assert timeline.is_playing
    assert timeline.index == 0
    assert panel.transport.play_button.accessibleName() == "Pause"
    qtbot.waitUntil(lambda: timeline.index >= 2)
    panel.transport.play_button.click()
    assert not timeline.is_playing
    assert panel.transport.play_button.accessibleName() == "Play"


def test_the_newest_step_is_followed_until_another_is_chosen(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(answer=LONG), num_before_gate=4)
    engine.gate.clear()
    wait_ready(qtbot, window)
    window.insight.open_tree()
    window.chat.send("Hello")
    timeline = window.insight.timeline
    qtbot.waitUntil(lambda: timeline.last == 3)
    assert timeline.follows
    assert timeline.index == 3
    timeline.go(1)
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert timeline.index == 1
    timeline.follow(True)
    assert timeline.index == timeline.last > 3


def test_arrows_walk_through_the_tree_and_say_where_they_are(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    panel.tabs.setCurrentIndex(STEP)
    window.insight.timeline.go(1)
    view = panel.view
    view.setFocus()
    said = []
    keys = (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right)
    for key in (*keys, Qt.Key.Key_Down, Qt.Key.Key_Left):
        QTest.keyClick(view, key)
        said.append(view.accessibleDescription())
    assert said == [
        "One: decided before",
        "␣two: accepted, from head 1, 25.0 %",
        "␣three.: accepted, from head 2, 25.0 %",
        "␣Four: chosen by the model, 50.0 %",
        "␣wrong: the best guess where the model chose otherwise, from head 3, 25.0 %",
        "␣three.: accepted, from head 2, 25.0 %",
    ]


def test_the_table_lists_the_nodes_and_chooses_the_same(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    panel.tabs.setCurrentIndex(STEP)
    window.insight.timeline.go(1)
    panel.table_button.click()
    rows = [[panel.table.item(r, c).text() for c in range(8)] for r in range(5)]
    assert rows[1] == ["1", "1", "␣two", "head 1", "1", "25.0 %", "accepted", "One"]
    assert rows[4][2:4] == ["␣Four", "the model itself"]
    panel.table.selectRow(2)
    assert panel.view.chosen == 2


# Text and tree ------------------------------------------------------------------------------------


def framed(answer: AnswerMessage) -> list[str]:
    cursor, texts = answer.view.textCursor(), []
    for start, end in answer.view.framed:
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        texts.append(cursor.selectedText())
    return texts


def centre_of(answer: AnswerMessage, text: str) -> QPointF:
    """The middle of a word in the answer."""
    cursor = answer.view.document().find(text)
    start, end = answer.view.textCursor(), answer.view.textCursor()
    start.setPosition(cursor.selectionStart())
    end.setPosition(cursor.selectionEnd())
    left, right = answer.view.cursorRect(start), answer.view.cursorRect(end)
    return QPointF((left.left() + right.left()) / 2, left.center().y())


def test_a_click_in_the_text_shows_its_step_and_a_node_its_text(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, answer = answered
    point = centre_of(answer, "seven").toPoint()
    QTest.mouseClick(answer.view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    panel = window.insight.tree
    assert panel is not None
    assert "␣seven" in shown(panel)
    chosen = panel.view.layout_shown.nodes[panel.view.chosen]
    assert chosen.text == "␣seven"
    panel.view.choose(0)
    panel.view.node_chosen.emit(1)
    assert framed(answer) == [panel.view.layout_shown.nodes[1].text.replace("␣", " ")]


def test_the_cursor_key_opens_the_step_too(answered: tuple[MainWindow, AnswerMessage]) -> None:
    window, answer = answered
    cursor = answer.view.document().find("two")
    cursor.setPosition(cursor.selectionStart())
    answer.view.setTextCursor(cursor)
    QTest.keyClick(answer.view, Qt.Key.Key_Return)
    assert window.insight.timeline.index == 1


def test_the_step_that_is_shown_is_framed_in_the_text(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    window.insight.open_tree()
    window.insight.timeline.go(1)
    assert framed(answer) == [" two three. Four"], "one frame for one step"
    window.toggle_theme()
    assert "".join(framed(answer)) == " two three. Four"
    window.insight.timeline.follow(True)
    assert framed(answer) == []


def test_only_the_answer_that_is_shown_is_framed(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, first = answered
    second = ask(qtbot, window, "More")
    window.insight.open_tree()
    window.insight.timeline.go(1)
    assert (framed(first), "".join(framed(second))) == ([], " two three. Four")
    first.token_pressed.emit(4)
    assert framed(second) == []
    assert framed(first)


def test_hovering_shows_the_tokens_card(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, answer = answered
    cards: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, html, _view: cards.append(html))
    hidden: list[bool] = []
    monkeypatch.setattr(QToolTip, "hideText", lambda: hidden.append(True))
    at = answer.view.position_at(centre_of(answer, "three"))
    answer.view.hovered.emit(at)
    answer.view.hovered.emit(at + 1)  # the same token: no second card
    assert len(cards) == 1
    assert "␣three." in cards[0]
    assert "head 2, accepted" in cards[0]
    answer.view.hovered.emit(-1)
    assert hidden


@pytest.mark.parametrize("word", ["One", "three", "ten"])
def test_the_character_under_the_mouse_is_found(
    answered: tuple[MainWindow, AnswerMessage], word: str
) -> None:
    _, answer = answered
    at = answer.view.position_at(centre_of(answer, word))
    start = answer.view.toPlainText().index(word)
    assert start <= at < start + len(word)
    assert answer.view.position_at(QPointF(answer.view.width() - 2, 4)) in (
        -1,
        len(answer.view.toPlainText()),
    )


def test_reroll_keeps_what_stands_before_the_token(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    answer = ask(qtbot, window, "Hello")
    at = answer.view.toPlainText().index("Four")
    menu = answer.menu_at(at)
    action = next(a for a in menu.actions() if a.text() == "Reroll from here")
    assert action.isEnabled()
    action.trigger()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    turn = window.chat.conversation.turns[-1]
    assert turn.keep_tokens == 3
    assert turn.given is not None
    assert turn.given.token_ids == tuple(range(10))
    request = engine.of_kind(Generate)[-1]
    assert isinstance(request, Generate)
    assert request.keep_tokens == 3
    assert request.messages[-1] == turn.given
    assert len(window.chat.answers) == 1
    assert window.chat.answers[0] is not answer


def test_only_the_last_complete_answer_can_be_rerolled(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, first = answered
    ask(qtbot, window, "More")
    action = next(a for a in first.menu_at(0).actions() if a.text() == "Reroll from here")
    assert not action.isEnabled()


# Files --------------------------------------------------------------------------------------------


def test_a_trace_is_saved_opened_and_dropped(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, _ = answered
    path = tmp_path / "trace.json"
    files = window.insight.files
    with qtbot.waitSignal(files.saved):
        files.save_trace(path)
    steps = [track_of(window)[i].nodes for i in range(len(track_of(window)))]
    with qtbot.waitSignal(files.opened):
        files.open_trace(path)
    assert track_of(window).request_id == LOADED
    assert [track_of(window)[i].nodes for i in range(len(track_of(window)))] == steps
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    drop = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.insight.timeline.show(None)
    with qtbot.waitSignal(files.opened):
        window.dropEvent(drop)
    assert track_of(window).request_id == LOADED


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other"}', "{}"])
def test_foreign_and_truncated_files_are_refused_with_the_reason(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path, text: str
) -> None:
    window, answer = answered
    path = tmp_path / "other.json"
    path.write_text(text)
    window.insight.files.open_trace(path)
    qtbot.waitUntil(lambda: bool(errors(window)))
    assert track_of(window).request_id == answer.request_id  # what was shown stays
    (card,) = errors(window)
    assert "other.json" in card.message


def test_what_can_not_be_saved_says_why(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, _ = answered
    window.insight.files.save_trace(tmp_path / "missing" / "trace.json")
    qtbot.waitUntil(lambda: bool(errors(window)))
    assert "can't be written" in errors(window)[-1].message
    window.insight.files.save_picture(
        window.insight.open_tree().view, tmp_path / "missing" / "tree.svg"
    )
    assert "can't be written" in errors(window)[-1].message
    window.insight.timeline.show(None)
    window.insight.files.ask_to_save()
    assert "no whole recording" in errors(window)[-1].message


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_picture_is_the_whole_tree(
    answered: tuple[MainWindow, AnswerMessage], tmp_path: Path, ending: str
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    panel.tabs.setCurrentIndex(STEP)
    window.insight.timeline.go(1)
    path = tmp_path / f"tree.{ending}"
    window.insight.files.save_picture(window.insight.open_tree().view, path)
    if ending == "svg":
        text = path.read_text(encoding="utf-8")
        assert "<svg" in text
        assert text.count("<path") >= 9  # five boxes, four lines
    else:
        image = QImage(str(path))
        wanted = panel.view.picture_rect().size().toSize() * 2
        assert image.size() == wanted
        colours = {image.pixel(x, y) for x in range(0, wanted.width(), 3) for y in range(0, 60, 3)}
        assert len(colours) > 3


# Steps --------------------------------------------------------------------------------------------


def test_the_curves_are_the_traces_and_share_the_slider(
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
    QTest.keyClick(over_time[1], Qt.Key.Key_Left)
    assert window.insight.timeline.index == 3
    QTest.keyClick(over_time[3], Qt.Key.Key_Home)
    assert window.insight.timeline.index == 0
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


def test_ten_thousand_steps_are_moved_through_at_once(
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
    qtbot.waitUntil(lambda: len(steps.figures) == 9_999)
    insight.open_tree()
    insight.timeline.go(9_999)
    assert "step 9,999 of 9,999" in tree.transport.text


# Equilibrium --------------------------------------------------------------------------------------


def test_the_conversation_is_verified_and_an_input_edited(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    panel = window.insight.open_equilibrium()
    panel.verify_conversation()
    assert "no conversation yet" in errors(window)[0].message
    ask(qtbot, window, "Hello")
    panel.verify_conversation()
    qtbot.waitUntil(lambda: bool(panel.shown.cells))
    request = engine.of_kind(Verify)[0]
    assert isinstance(request, Verify)
    assert [m.content for m in request.messages] == ["Hello", engine.script.answer]
    assert request.messages[1].token_ids  # read as it was written
    num_tokens = len(panel.shown.cells)
    table = panel.table
    assert table.currentRow() == 0, "F2 edits an input"
    header = table.horizontalHeader()
    wanted = [max(table.sizeHintForColumn(k), header.sectionSizeHint(k)) for k in range(num_tokens)]
    assert [table.columnWidth(k) for k in range(num_tokens)] == wanted
    # A header that follows its contents takes ten seconds for 900 tokens.
    assert header.sectionResizeMode(0) != QHeaderView.ResizeMode.ResizeToContents
    table.item(0, 3).setText("␣mountain")
    qtbot.waitUntil(lambda: panel.shown.bonus is not None)
    edit = engine.of_kind(Verify)[1]
    assert isinstance(edit, Verify)
    assert edit.text == " mountain"
    assert len(edit.before_ids) == 3
    assert len(edit.after_ids) == num_tokens - 4
    assert "the bonus token" in panel.text
    # It is tinted as what is right, the mark under it as what is not the next input.
    place = panel.shown.bonus
    assert place is not None
    bonus = [table.item(row, place) for row in (1, 2)]
    assert [item.text() for item in bonus if item] == [f"★ {panel.shown.cells[place].output}", "✗"]
    picture = table.viewport().grab().toImage()
    tints = [
        picture.pixelColor(table.visualItemRect(item).topLeft() + QPoint(3, 3)).name()
        for item in bonus
        if item
    ]
    theme = window.insight._appearance.theme
    assert tints == [theme.agreed.tint, theme.danger_surface]


def test_edits_made_while_one_is_verified_wait_for_it(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(verifies_at_once=False))
    wait_ready(qtbot, window)
    panel = window.insight.open_equilibrium()
    panel.edit.setPlainText("a bb ccc dddd eeeee")
    panel.verify_text()
    engine.gate.set()
    qtbot.waitUntil(lambda: [cell.token_id for cell in panel.shown.cells] == [1, 3, 4, 5, 6])
    engine.gate.clear()
    cells = [panel.table.item(0, place) for place in range(5)]
    for place, text in ((3, "x"), (1, "two words"), (1, "yyyyyyyyy"), (4, "z")):
        item = cells[place]
        assert item is not None
        item.setText(text)
    assert len(engine.of_kind(Verify)) == 2, "the others wait"
    assert panel.text == "Verifying …"
    engine.gate.set()
    # Two tokens took the place of one, and then one that of both: what came behind has moved.
    qtbot.waitUntil(lambda: [cell.token_id for cell in panel.shown.cells] == [1, 9, 4, 1, 1])
    last = engine.of_kind(Verify)[-1]
    assert isinstance(last, Verify)
    assert (last.text, last.before_ids, last.after_ids) == ("z", (1, 9, 4, 1), ())


def test_a_text_is_as_long_as_the_context_and_has_lines(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    panel = window.insight.open_equilibrium()
    QTest.keyClick(panel.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert panel.edit.toPlainText() == "\n"
    assert engine.of_kind(Verify) == []
    text = "def f():\n\treturn 1\n" * 4000
    panel.edit.setPlainText(text)
    panel.verify_text()
    (request,) = engine.of_kind(Verify)
    assert isinstance(request, Verify)
    assert request.text == text


def test_what_is_typed_outlives_a_reply(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(verifies_at_once=False))
    wait_ready(qtbot, window)
    panel = window.insight.open_equilibrium()
    engine.gate.set()
    panel.edit.setPlainText("a bb ccc")
    panel.verify_text()
    qtbot.waitUntil(lambda: len(panel.shown.cells) == 3)
    engine.gate.clear()
    panel.replace(0, "xx")
    table = panel.table
    table.setFocus()
    table.setCurrentCell(0, 2)
    QTest.keyClick(table, Qt.Key.Key_F2)
    editor = table.focusWidget()
    assert editor is not None
    QTest.keyClicks(editor, "yyyyy")
    engine.gate.set()
    qtbot.wait(100)
    assert panel.shown.cells[0].token_id == 1, "not while a cell is edited"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [cell.token_id for cell in panel.shown.cells] == [2, 3, 5])


def test_any_text_is_verified_and_a_refusal_leaves_what_is_shown(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    panel = window.insight.open_equilibrium()
    panel.edit.setPlainText("a bb ccc x")
    QTest.keyClick(panel.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(panel.shown.cells))
    assert [cell.token_id for cell in panel.shown.cells] == [1, 3, 4, 2]
    assert [cell.mark for cell in panel.shown.cells] == ["✗", "✓", "✗", "→"]
    panel._next_button.click()
    assert panel.table.currentColumn() == 0
    panel.edit.clear()
    panel.verify_text()
    qtbot.waitUntil(lambda: len(errors(window)) == 1)
    assert len(panel.shown.cells) == 4


# Compare ------------------------------------------------------------------------------------------


def test_two_modes_answer_side_by_side(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
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


def test_rows_are_chosen_where_there_is_a_tree_and_the_title_says_so(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    left, right = window.insight.open_compare().sides
    assert (left.rows_box.isEnabled(), right.rows_box.isEnabled()) == (False, True)
    for side in (left, right):
        side.rows_box.setCurrentIndex(side.rows_box.findData(8))
    assert (left.settings(1, 0.7).tree_rows, right.settings(1, 0.7).tree_rows) == (0, 8)
    assert (left.mode, right.mode) == ("None (plain) · Greedy", "Medusa heads · Greedy · 8 rows")
    left.choose_drafter("medusa")
    assert left.settings(1, 0.7).tree_rows == 8
    window.keeper.changed.emit()
    assert left.drafter_box.currentData() == "medusa", "what the user chose stays"


def test_tokens_of_a_comparison_have_cards_steps_and_the_chosen_marks(
    qtbot: QtBot, open_fake: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    window.page.strip.choose_marking(Marking.ACCEPTED)
    dialog = window.insight.open_compare()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: bool(dialog.verdict))
    assert all(r.records for r in engine.of_kind(Generate) if isinstance(r, Generate))
    plain, medusa = dialog.answers
    assert {answer.document.marking for answer in dialog.answers} == {Marking.ACCEPTED}
    window.page.strip.choose_marking(Marking.OFF)
    assert {answer.document.marking for answer in dialog.answers} == {Marking.OFF}
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


def test_without_recording_a_comparison_has_none(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    dialog = window.insight.open_compare()
    window.page.header.record_action.trigger()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: bool(dialog.verdict))
    assert not any(r.records for r in engine.of_kind(Generate) if isinstance(r, Generate))
    assert window.insight.recordings.tracks == {}


@pytest.mark.parametrize("by_key", [False, True])
def test_different_rules_are_not_compared_and_closing_stops(
    by_key: bool, qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(num_before_gate=2)
    wait_ready(qtbot, window)
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


def test_a_side_that_fails_says_why(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake(Script(decode_error="It broke."))
    wait_ready(qtbot, window)
    dialog = window.insight.open_compare()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: not dialog.is_running)
    assert dialog.verdict.count("It broke.") == 1, "both failed alike"
    assert errors(window) == []


# Odd turns ----------------------------------------------------------------------------------------


def test_a_new_chat_begins_the_panels_anew(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    insight = window.insight
    tree, steps, table = insight.open_tree(), insight.open_steps(), insight.open_equilibrium()
    table.verify_conversation()
    qtbot.waitUntil(lambda: bool(table.shown.cells))
    ask(qtbot, window, "More")
    assert "gone on since" in table.text
    insight.timeline.play(True)
    window.chat.new_chat()
    assert not insight.timeline.is_playing
    qtbot.waitUntil(lambda: tree.tabs.currentIndex() == PLAN)
    assert insight.timeline.track is None
    assert len(steps.figures) == 0
    assert table.shown.cells == ()
    assert table.text == "Nothing verified yet."


def test_an_answer_that_comes_at_once_stays(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    window.chat.new_chat()
    answer = ask(qtbot, window, "More")
    qtbot.wait(FORGET_MS + 300)
    assert track_of(window).request_id == answer.request_id
    assert panel.tabs.currentIndex() == STEP


def test_a_text_of_the_users_own_outlives_the_chat(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    table = window.insight.open_equilibrium()
    table.edit.setPlainText("a bb ccc")
    table.verify_text()
    qtbot.waitUntil(lambda: len(table.shown.cells) == 3)
    window.chat.new_chat()
    assert len(table.shown.cells) == 3


def test_with_the_last_panel_the_frame_goes_and_nothing_plays_on(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, answer = answered
    insight = window.insight
    insight.open_tree()
    insight.open_steps()
    insight.timeline.go(1)
    insight.timeline.play(True)
    assert framed(answer) == [" two three. Four"]
    insight.close_all()
    qtbot.waitUntil(lambda: framed(answer) == [])
    assert not insight.timeline.is_playing


def test_a_token_without_a_record_says_so(
    qtbot: QtBot, open_fake: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    window.page.header.record_action.trigger()
    answer = ask(qtbot, window, "Hello")
    told: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _view: told.append(text))
    answer.token_pressed.emit(2)
    assert told == [NOT_RECORDED]
    assert window.insight.tree is None


def test_steps_that_leave_the_buffer_take_the_place_along(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, answer = answered
    insight = window.insight
    panel = insight.open_tree()
    insight.timeline.go(3)
    insight.recordings._max_steps = 7
    dialog = insight.open_compare()
    dialog.edit.setText("Hello")
    dialog.start()
    qtbot.waitUntil(lambda: bool(dialog.verdict))
    assert len(insight.recordings.tracks.get(answer.request_id, ())) == 0
    assert panel.transport.text == "its steps left the buffer"
    assert insight.timeline.index == 0


def test_followed_live_or_not_stays_so_for_the_next_answer(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    panel.transport.follow_box.click()  # it is on
    assert not window.insight.timeline.follows
    ask(qtbot, window, "More")
    assert not panel.transport.follow_box.isChecked()
    assert window.insight.timeline.index == 0
    panel.transport.follow_box.click()
    ask(qtbot, window, "More")
    assert panel.transport.follow_box.isChecked()
    assert window.insight.timeline.index == window.insight.timeline.last


def test_panels_wake_a_model_that_has_fallen_asleep(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake()
    wait_ready(qtbot, window)
    table = window.insight.open_equilibrium()
    table.edit.setPlainText("a bb")
    for wakes in (table.verify_text, lambda: start_compare(window)):
        window.keeper._fall_asleep()
        qtbot.waitUntil(lambda: window.keeper.status.phase is Phase.ASLEEP)
        num_loads = len(engine.of_kind(LoadModel))
        wakes()
        assert len(engine.of_kind(LoadModel)) == num_loads + 1
        wait_ready(qtbot, window)
    assert len(table.shown.cells) == 2


def start_compare(window: MainWindow) -> None:
    dialog = window.insight.open_compare()
    dialog.edit.setText("Hello")
    assert dialog.start_button.isEnabled()
    dialog.start_button.click()


def test_a_comparison_takes_the_headers_temperature_and_keeps_its_choice(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, engine = open_fake(num_before_gate=2)
    wait_ready(qtbot, window)
    window.page.header.pickers.temperature_box.setValue(1.3)
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
    asked = [r.settings for r in engine.of_kind(Generate) if isinstance(r, Generate)]
    assert {settings.temperature for settings in asked} == {1.3}
    assert dialog.verdict.startswith("Under this rule guesses change the text")


def test_a_picture_is_of_the_step_that_is_shown_although_nodes_are_listed(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    window.insight.timeline.go(1)
    panel.table_button.click()
    window.insight.timeline.go(3)
    asked: list[list[str]] = []
    panel.picture_requested.disconnect()
    panel.picture_requested.connect(lambda: asked.append(shown(panel)))
    panel._ask_for_picture()
    assert asked == [[node.text for node in panel._layout().nodes]]


def test_nothing_is_no_picture_and_names_have_endings(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, _ = answered
    files, panel = window.insight.files, window.insight.open_tree()
    files.save_picture(panel.view, tmp_path / "tree.jpg")
    assert "no name of a picture" in errors(window)[-1].message
    assert not (tmp_path / "tree.jpg").exists()
    files.save_picture(panel.view, tmp_path / "tree.svg")
    assert "Saved as" in panel._said.text()
    window.insight.timeline.show(None)
    qtbot.waitUntil(lambda: panel.tabs.currentIndex() == PLAN)
    panel.tabs.setCurrentIndex(STEP)
    files.ask_for_picture(panel.view)
    assert "no tree to save" in errors(window)[-1].message


@pytest.mark.expects_errors
def test_an_answer_that_broke_off_can_not_be_saved(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake(Script(decode_error="It broke."))
    wait_ready(qtbot, window)
    window.chat.send("Hello")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    window.insight.files.ask_to_save()
    assert "broke off" in errors(window)[-1].hint


def test_a_trace_with_more_steps_than_the_buffer_has_is_refused(
    qtbot: QtBot,
    answered: tuple[MainWindow, AnswerMessage],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window, answer = answered
    path = tmp_path / "trace.json"
    with qtbot.waitSignal(window.insight.files.saved):
        window.insight.files.save_trace(path)
    monkeypatch.setattr(trace_files, "MAX_STEPS", 3)
    window.insight.files.open_trace(path)
    qtbot.waitUntil(lambda: bool(errors(window)))
    assert "5 steps; 3 can be shown" in errors(window)[-1].message
    assert track_of(window).request_id == answer.request_id


@pytest.mark.parametrize("names", [("a.txt",), ("a.json", "b.json"), ("folder",)])
def test_what_is_dropped_and_no_trace_is_refused_with_the_reason(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], names: tuple[str, ...]
) -> None:
    window, _ = answered
    window.dropEvent(dropped(*names))
    assert "can't be opened" in errors(window)[-1].message


@pytest.mark.parametrize("place", ["composer", "equilibrium", "tree"])
def test_files_fall_through_to_the_window(
    place: str, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    edits = {
        "composer": lambda: window.page.composer.edit,
        "equilibrium": lambda: window.insight.open_equilibrium().edit,
    }
    if place == "tree":
        assert not window.insight.open_tree().view.acceptDrops()
        return
    edit = edits[place]()
    assert not edit.canInsertFromMimeData(dropped("a.json").mimeData())
    text = QMimeData()
    text.setText("words")
    assert edit.canInsertFromMimeData(text)


def dropped(*names: str) -> QDropEvent:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(f"/tmp/{name}") for name in names])
    event = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    event.keeps = mime  # type: ignore[attr-defined]  # Qt holds no reference
    return event


def test_a_text_that_is_about_to_go_can_not_be_edited(qtbot: QtBot, open_fake: Open) -> None:
    window, engine = open_fake(Script(verifies_at_once=False))
    wait_ready(qtbot, window)
    panel = window.insight.open_equilibrium()
    engine.gate.set()
    panel.edit.setPlainText("a bb ccc")
    panel.verify_text()
    qtbot.waitUntil(lambda: len(panel.shown.cells) == 3)
    engine.gate.clear()
    panel.edit.setPlainText("zzzz")
    panel.verify_text()
    item = panel.table.item(0, 1)
    assert item is not None
    item.setText("typed")
    engine.gate.set()
    qtbot.waitUntil(lambda: [cell.token_id for cell in panel.shown.cells] == [4])
    assert len(engine.of_kind(Verify)) == 2


def test_what_has_no_text_of_its_own_is_replaced_and_not_by_chance(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    table = window.insight.open_equilibrium().table
    tokens = [(b"\xe2\x82", 5), (b"", 6), (b" " * 40, 7)]
    told = tuple(VerifiedToken(i, text, Alternative(1, b"x", 0.5)) for text, i in tokens)
    table.fill(agreement(Verified("s", "r", told, 0.0)), window.insight._appearance.theme)
    edits: list[tuple[int, str]] = []
    table.edited.disconnect()
    table.edited.connect(lambda place, text: edits.append((place, text)))
    table.setFocus()
    for place, typed in ((0, ""), (0, "a"), (1, ""), (1, "b"), (2, "")):
        table.setCurrentCell(0, place)
        QTest.keyClick(table, Qt.Key.Key_F2)
        editor = table.focusWidget()
        assert isinstance(editor, QLineEdit)
        assert editor.text() == ("␣" * 40 if place == 2 else "")
        QTest.keyClicks(editor, typed)
        QTest.keyClick(editor, Qt.Key.Key_Return)
        qtbot.wait(5)  # until that editor is gone
    assert edits == [(0, "a"), (1, "b")]


# All ----------------------------------------------------------------------------------------------


def test_hostile_tokens_are_no_markup_anywhere(qtbot: QtBot, open_fake: Open) -> None:
    hostile = "<img/src='file:///etc/passwd'> <b>bold</b> <a/href='http://x'>link</a>"
    window, _ = open_fake(Script(answer=f"One {hostile} two three four five six"))
    wait_ready(qtbot, window)
    ask(qtbot, window, "Hello")
    panel = window.insight.open_tree()
    tips = []
    panel.tabs.setCurrentIndex(STEP)
    for index in range(window.insight.timeline.last + 1):
        window.insight.timeline.go(index)
        tips += [item.toolTip() for item in panel.view.scene().items()]
    assert any("&lt;img" in tip for tip in tips)
    table = window.insight.open_equilibrium()
    table.edit.setPlainText("x")
    table.verify_text()
    qtbot.waitUntil(lambda: bool(table.shown.cells))
    tips.append(table.table.item(1, 0).toolTip())
    assert not any("<img" in tip or "<b>" in tip or "<a" in tip for tip in tips)
    labels = [label for p in (panel, table) for label in p.findChildren(QLabel)]
    told = [label for label in labels if "<" in label.text()]
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in told)


CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
)


def controls_of(panel: QWidget) -> list[QWidget]:
    """What a user works with in a panel, but for what Qt makes inside of it."""
    found = [w for w in panel.findChildren(QWidget) if isinstance(w, CONTROLS) and w.isVisible()]
    inner = (QScrollBar, QHeaderView)
    inside = (QTabBar, QComboBox, QAbstractItemView)
    return [
        widget
        for widget in found
        if not isinstance(widget, inner) and not isinstance(widget.parentWidget(), inside)
    ]


def name_of(widget: QWidget) -> str:
    own = widget.text() if isinstance(widget, QAbstractButton) else ""
    return widget.accessibleName() or own


@pytest.mark.parametrize("opened", ["tree", "plan", "table", "steps", "equilibrium", "compare"])
def test_every_control_of_a_panel_has_a_name_and_the_tab_key_reaches_it(
    opened: str, qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    insight = window.insight
    makers: dict[str, Callable[[], QWidget]] = {
        "tree": insight.open_tree,
        "plan": insight.open_tree,
        "table": insight.open_tree,
        "steps": insight.open_steps,
        "equilibrium": insight.open_equilibrium,
        "compare": insight.open_compare,
    }
    panel = makers[opened]()
    if insight.tree is not None:
        insight.tree.tabs.setCurrentIndex(PLAN if opened == "plan" else STEP)
        insight.tree.table_button.setChecked(opened == "table")
        insight.timeline.go(1)
    if insight.equilibrium is not None:
        insight.equilibrium.verify_conversation()
        qtbot.waitUntil(lambda: bool(insight.equilibrium.shown.cells))
    qtbot.wait(20)
    controls = controls_of(panel)
    assert len(controls) >= 5
    for widget in controls:
        assert name_of(widget), widget
    names = [name_of(widget) for widget in controls]
    assert len(set(names)) == len(names), names
    top = panel.window()
    reached: set[QWidget] = set()
    for _ in range(80):
        focused = top.focusWidget()
        assert focused is not None
        reached.add(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    missed = [name_of(w) for w in controls if w.isEnabled() and w not in reached]
    assert missed == []
    unseen = []
    for widget in controls:
        if widget.isEnabled():
            for scroller in top.findChildren(QScrollArea):
                scroller.ensureWidgetVisible(widget)  # as the Tab key does
            top.setFocus()
            plain = top.grab().toImage()
            widget.setFocus()
            if top.grab().toImage() == plain:
                unseen.append(name_of(widget))
    assert unseen == [], "the focus is not to be seen"


def test_every_drawing_tells_what_it_shows(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_steps()
    qtbot.waitUntil(lambda: len(panel.figures) == 4)
    qtbot.waitUntil(lambda: all(plot.accessibleDescription() for plot in panel.plots))
    tree = window.insight.open_tree()
    told = ("h1: guessed by head 1", "a row of the tree")
    for tab in (STEP, PLAN):
        tree.tabs.setCurrentIndex(tab)
        (seen,) = (legend for legend in tree.legends if legend.isVisible())
        assert told[tab] in seen.accessibleDescription()
    tree.table_button.setChecked(True)
    assert not any(legend.isVisible() for legend in tree.legends)


@pytest.mark.parametrize(
    ("key", "grows"), [(Qt.Key.Key_Plus, True), (Qt.Key.Key_Equal, True), (Qt.Key.Key_Minus, False)]
)
def test_the_tree_is_zoomed_by_key_and_fitted_again(
    key: Qt.Key, grows: bool, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    view = window.insight.open_tree().view
    view.setFocus()
    before = view.transform().m11()
    QTest.keyClick(view, key)
    assert (view.transform().m11() > before) == grows
    QTest.keyClick(view, Qt.Key.Key_0)
    assert view.transform().m11() == pytest.approx(before)


def test_a_zoom_and_another_theme_reach_every_panel(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    insight = window.insight
    insight.open_steps()
    insight.open_equilibrium()
    insight.open_compare()
    tree = insight.open_tree()
    tree.tabs.setCurrentIndex(STEP)
    small = tree.view.picture_rect().width()
    window.zoom(2)
    window.toggle_theme()
    assert tree.view.picture_rect().width() > small
    window.zoom(0)
