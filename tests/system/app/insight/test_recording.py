"""What is recorded, and the place in it that all panels share."""

import pytest
from PySide6.QtWidgets import (
    QToolTip,
)
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.insight.insight_panels import NOT_RECORDED
from app.insight.tree_panel import PLAN, STEP
from app.window.main_window import MainWindow
from medusa_core.chats.conversation import Answer, Turn
from medusa_core.chats.rounds import Round
from medusa_core.messages import (
    TARGET,
    Generate,
    StepDone,
    StepTimes,
)
from tests.support.window.driving import ask, wait_ready
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open
from tests.support.window.looks import framed, track_of

PREFILL = StepDone(
    "s", "r", 0, (1,), (b"a",), (TARGET,), 1, 1, (TARGET,), StepTimes(0, 0, 0, 0), 0, 2
)


LONG = " ".join(f"word{number}" for number in range(80))


def test_an_answer_is_recorded_step_by_step(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    track = track_of(window)
    assert track.request_id == answer.request_id
    assert track.done == answer.done
    assert track.num_tokens == answer.content.num_tokens == 10
    assert len(track) == 5


def test_steps_of_a_cancelled_answer_are_not_recorded(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    (turn,) = window.chat.conversation.turns
    gone = Turn(turn.prompt, Answer([Round("gone")], turn.answer.settings))
    window.chat.answer_reported.emit(gone, (PREFILL._replace(request_id="gone"),))
    assert track_of(window).request_id == answer.request_id
    assert list(window.insight.recordings.tracks) == [answer.request_id]


def test_recording_can_be_switched_off_permanently(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    window.page.header.record_action.trigger()
    ask(qtbot, window, "Hello")
    (request,) = engine.of_kind(Generate)
    assert isinstance(request, Generate)
    assert not request.records
    assert window.insight.timeline.track is None
    assert not window.settings.values.records


def test_a_token_without_a_record_says_so(
    qtbot: QtBot, open_ready: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_ready()
    window.page.header.record_action.trigger()
    answer = ask(qtbot, window, "Hello")
    reported: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, _view: reported.append(text))
    answer.token_pressed.emit(2)
    assert reported == [NOT_RECORDED]
    assert window.insight.tree is None


def test_steps_dropped_from_the_buffer_move_the_position_along(
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


def test_steps_are_played_and_paused(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    timeline = window.insight.timeline
    timeline.go(timeline.last)
    panel.transport.play_button.click()
    assert timeline.is_playing
    assert timeline.index == 0
    assert panel.transport.play_button.accessibleName() == "Pause"
    qtbot.waitUntil(lambda: timeline.index >= 2)
    panel.transport.play_button.click()
    assert not timeline.is_playing
    assert panel.transport.play_button.accessibleName() == "Play"


def test_the_tree_of_a_finished_answer_opens_on_its_best_step(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, answer = answered
    timeline = window.insight.timeline
    assert timeline.index == timeline.last
    window.insight.open_tree()
    assert timeline.track is not None
    counts = [timeline.track[index].num_appended for index in range(timeline.last + 1)]
    assert timeline.index == counts.index(max(counts)) != timeline.last
    assert framed(answer) == [" two three. Four"]
    timeline.go(timeline.last)
    window.insight.open_tree()  # it is seen: what the user chose stays
    assert timeline.index == timeline.last


def test_closing_the_last_panel_removes_the_frame_and_stops_playing(
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


def test_following_live_is_kept_for_the_next_answer(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    window.insight.timeline.follow(True)
    panel.transport.follow_box.click()
    assert not window.insight.timeline.follows
    ask(qtbot, window, "More")
    assert not panel.transport.follow_box.isChecked()
    assert window.insight.timeline.index == 0
    panel.transport.follow_box.click()
    ask(qtbot, window, "More")
    assert panel.transport.follow_box.isChecked()
    assert window.insight.timeline.index == window.insight.timeline.last


def test_a_new_chat_clears_the_panels(
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


def test_an_answer_that_arrives_in_one_piece_is_recorded(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    window.chat.new_chat()
    answer = ask(qtbot, window, "More")
    assert track_of(window).request_id == answer.request_id
    assert panel.tabs.currentIndex() == STEP
