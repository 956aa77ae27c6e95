"""The table of inputs and outputs."""

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
)
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.insight.agreement import agreement
from app.insight.equilibrium_panel import EquilibriumPanel
from app.window.main_window import MainWindow
from medusa_core.messages import (
    Alternative,
    Verified,
    VerifiedToken,
    Verify,
)
from tests.support.window.driving import ask, errors
from tests.support.window.fakes import FakeEngine, Script
from tests.support.window.fixtures import Open


def test_the_conversation_is_verified_and_an_input_can_be_edited(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    panel = window.insight.open_equilibrium()
    panel.verify_conversation()
    assert "no conversation yet" in errors(window)[0].message
    ask(qtbot, window, "Hello")
    panel.verify_conversation()
    qtbot.waitUntil(lambda: bool(panel.shown.cells))
    request = engine.of_kind(Verify)[0]
    assert isinstance(request, Verify)
    assert [m.text for m in request.messages] == ["Hello", engine.script.answer]
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


def test_equilibrium_opens_with_the_conversation_but_keeps_an_own_text(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    ask(qtbot, window, "Hello")
    panel = window.insight.open_equilibrium()
    qtbot.waitUntil(lambda: bool(panel.shown.cells))
    panel.edit.setPlainText("a text of mine")
    panel.verify_text()
    qtbot.waitUntil(lambda: len(panel.shown.cells) == 4)
    window.insight.docks.hide(panel)
    window.insight.open_equilibrium()
    assert len(panel.shown.cells) == 4
    assert len(engine.of_kind(Verify)) == 2


def verify_gated(
    qtbot: QtBot, open_ready: Open, text: str
) -> tuple[MainWindow, FakeEngine, EquilibriumPanel]:
    """A panel with a text, and an engine that waits at its gate from then on."""
    window, engine = open_ready(Script(verifies_at_once=False))
    panel = window.insight.open_equilibrium()
    panel.edit.setPlainText(text)
    panel.verify_text()
    engine.gate.set()
    qtbot.waitUntil(lambda: len(panel.shown.cells) == len(text.split()))
    engine.gate.clear()
    return window, engine, panel


def ids_of(panel: EquilibriumPanel) -> list[int]:
    """The tokens that are shown."""
    return [cell.token_id for cell in panel.shown.cells]


def test_edits_made_during_verification_are_queued(qtbot: QtBot, open_ready: Open) -> None:
    _, engine, panel = verify_gated(qtbot, open_ready, "a bb ccc dddd eeeee")
    assert ids_of(panel) == [1, 3, 4, 5, 6]
    cells = [panel.table.item(0, place) for place in range(5)]
    for place, text in ((3, "x"), (1, "two words"), (1, "yyyyyyyyy"), (4, "z")):
        item = cells[place]
        assert item is not None
        item.setText(text)
    assert len(engine.of_kind(Verify)) == 2, "the others wait"
    assert panel.text == "Verifying…"
    engine.gate.set()
    # Two tokens took the place of one, and then one that of both: what came behind has moved.
    qtbot.waitUntil(lambda: ids_of(panel) == [1, 9, 4, 1, 1])
    last = engine.of_kind(Verify)[-1]
    assert isinstance(last, Verify)
    assert (last.text, last.before_ids, last.after_ids) == ("z", (1, 9, 4, 1), ())


def test_a_text_about_to_be_replaced_cannot_be_edited(qtbot: QtBot, open_ready: Open) -> None:
    _, engine, panel = verify_gated(qtbot, open_ready, "a bb ccc")
    panel.edit.setPlainText("zzzz")
    panel.verify_text()
    item = panel.table.item(0, 1)
    assert item is not None
    item.setText("typed")
    engine.gate.set()
    qtbot.waitUntil(lambda: ids_of(panel) == [4])
    assert len(engine.of_kind(Verify)) == 2


def test_typed_input_survives_a_reply(qtbot: QtBot, open_ready: Open) -> None:
    window, engine, panel = verify_gated(qtbot, open_ready, "a bb ccc")
    panel.replace(0, "xx")
    table = panel.table
    table.setFocus()
    table.setCurrentCell(0, 2)
    QTest.keyClick(table, Qt.Key.Key_F2)
    editor = table.focusWidget()
    assert editor is not None
    QTest.keyClicks(editor, "yyyyy")
    engine.gate.set()
    qtbot.waitUntil(lambda: not window._bridge.is_busy)
    assert panel.shown.cells[0].token_id == 1, "not while a cell is edited"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: ids_of(panel) == [2, 3, 5])


def test_a_token_without_text_can_only_be_replaced_deliberately(
    qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    panel = window.insight.open_equilibrium()
    qtbot.waitUntil(lambda: bool(panel.shown.cells))  # else they would come over what is filled in
    table = panel.table
    tokens = [(b"\xe2\x82", 5), (b"", 6), (b" " * 40, 7)]
    reported = tuple(VerifiedToken(i, text, Alternative(1, b"x", 0.5)) for text, i in tokens)
    table.fill(agreement(Verified("s", "r", reported, 0.0)), window.insight._appearance.theme)
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
        qtbot.waitUntil(lambda: table.state() is not QAbstractItemView.State.EditingState)
    assert edits == [(0, "a"), (1, "b")]


def test_a_text_may_fill_the_context_and_has_lines(open_ready: Open) -> None:
    window, engine = open_ready()
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


def test_any_text_can_be_verified_and_a_refusal_keeps_the_shown_one(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    panel = window.insight.open_equilibrium()
    panel.edit.setPlainText("a bb ccc x")
    QTest.keyClick(panel.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(panel.shown.cells))
    assert ids_of(panel) == [1, 3, 4, 2]
    assert [cell.mark for cell in panel.shown.cells] == ["✗", "✓", "✗", "→"]
    panel._next_button.click()
    assert panel.table.currentColumn() == 0
    panel.edit.clear()
    panel.verify_text()
    qtbot.waitUntil(lambda: len(errors(window)) == 1)
    assert len(panel.shown.cells) == 4


def test_an_own_text_survives_a_change_of_chat(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    table = window.insight.open_equilibrium()
    table.edit.setPlainText("a bb ccc")
    table.verify_text()
    qtbot.waitUntil(lambda: len(table.shown.cells) == 3)
    window.chat.new_chat()
    assert len(table.shown.cells) == 3


def test_predictions_of_another_model_are_removed(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "Hello")
    panel = window.insight.open_equilibrium()
    qtbot.waitUntil(lambda: bool(panel.shown.cells))
    window.insight.docks.hide(panel)
    other = replace(window.loaded_model.choice, name="Other", model_dir=Path("other"))
    with qtbot.waitSignal(window.loaded_model.chosen):
        window.loaded_model.load(other)
    assert not panel.shown.cells
