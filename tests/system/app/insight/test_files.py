"""Traces and pictures: saved, opened, dropped onto the window, refused."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.insight import trace_files
from app.insight.trace_files import LOADED
from app.insight.tree_panel import PLAN, STEP
from app.window.main_window import MainWindow
from tests.support.window.driving import errors
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open, Seen
from tests.support.window.looks import dropped, open_step, shown, track_of


def test_a_trace_can_be_saved_opened_and_dropped(
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
    tree = window.insight.tree
    assert tree is not None
    assert tree.tabs.tabText(STEP) == "trace.json"
    assert "Llama-Pebble" in tree.tabs.tabToolTip(STEP)
    assert [track_of(window)[i].nodes for i in range(len(track_of(window)))] == steps
    window.insight.timeline.show(None)
    with qtbot.waitSignal(files.opened):
        window.dropEvent(dropped(path))
    assert track_of(window).request_id == LOADED
    window.insight.timeline.show(None, 0)
    assert tree.tabs.tabText(STEP) == "This step"


def test_foreign_and_truncated_files_are_refused_with_the_reason(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, answer = answered
    path = tmp_path / "other.json"
    for text in ("{", "[]", '{"format": "other"}', "{}"):
        path.write_text(text)
        window.insight.files.open_trace(path)
        qtbot.waitUntil(lambda: bool(errors(window)))
        assert track_of(window).request_id == answer.request_id  # what was shown stays
        (card,) = errors(window)
        assert "other.json" in card.message
        card.dismissed.emit()


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


def test_dropped_files_other_than_traces_are_attached_or_refused_with_the_reason(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, _ = answered
    for names in (("a.txt",), ("a.json", "b.json"), ("folder",)):
        window.dropEvent(dropped(*(tmp_path / name for name in names)))
        qtbot.waitUntil(lambda names=names: len(errors(window)) == len(names))
        assert "isn't a file" in errors(window)[-1].message
        for card in errors(window):
            card.dismissed.emit()
    (tmp_path / "notes.txt").write_text("some words")
    window.dropEvent(dropped(tmp_path / "notes.txt"))
    qtbot.waitUntil(lambda: bool(window.page.composer.files.attachments), timeout=60_000)


@pytest.mark.parametrize("place", ["equilibrium", "tree"])
def test_dropped_files_reach_the_window(place: str, seen: Seen) -> None:
    window, _ = seen
    if place == "tree":
        assert not window.insight.open_tree().view.acceptDrops()
        return
    edit = window.insight.open_equilibrium().edit
    assert not edit.canInsertFromMimeData(dropped("a.json").mimeData())
    text = QMimeData()
    text.setText("words")
    assert edit.canInsertFromMimeData(text)


def test_a_failed_save_says_why(
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


@pytest.mark.expects_errors
def test_an_interrupted_answer_cannot_be_saved_as_a_trace(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready(Script(decode_error="It broke."))
    window.chat.send("Hello")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    window.insight.files.ask_to_save()
    assert "broke off" in errors(window)[-1].hint


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_exported_picture_is_the_whole_tree(seen: Seen, tmp_path: Path, ending: str) -> None:
    window, _ = seen
    panel = open_step(window, 1)
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


def test_a_picture_shows_the_shown_step_even_if_nodes_are_listed(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    panel = window.insight.open_tree()
    window.insight.timeline.go(1)
    panel.table_button.click()
    window.insight.timeline.go(3)
    requested: list[list[str]] = []
    panel.picture_requested.disconnect()
    panel.picture_requested.connect(lambda: requested.append(shown(panel)))
    panel._ask_for_picture()
    assert requested == [[node.text for node in panel._layout().nodes]]


def test_an_empty_tree_has_no_picture_and_files_get_extensions(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage], tmp_path: Path
) -> None:
    window, _ = answered
    files, panel = window.insight.files, window.insight.open_tree()
    files.save_picture(panel.view, tmp_path / "tree.jpg")
    assert "isn't the name of a picture" in errors(window)[-1].message
    assert not (tmp_path / "tree.jpg").exists()
    files.save_picture(panel.view, tmp_path / "tree.svg")
    assert "Saved as" in panel._note.text()
    window.insight.timeline.show(None)
    qtbot.waitUntil(lambda: panel.tabs.currentIndex() == PLAN)
    panel.tabs.setCurrentIndex(STEP)
    files.ask_for_picture(panel.view)
    assert "no tree to save" in errors(window)[-1].message
