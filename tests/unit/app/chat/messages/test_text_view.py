"""Frames around words of a shown text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtGui import QColor, QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.messages.text_view import (
    InertDocument,
    TextView,
    plain_document,
)
from app.widgets.qt_text import passed_on
from medusa_core.messages import TokenSource
from tests.support.window.rendered import STYLE
from tests.support.window.streamed_answers import StreamedDocument, step


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("one two three", "two"),
        ("- item\n  - deep two", "two"),
        ("> said two", "two"),
        ("```\ncode two\n```", "two"),
        ("| a | b |\n|---|---|\n| c | two |", "two"),
        ("שלום two עולם", "two"),
        ("wrapped " * 30 + "two", "two"),
    ],
)
def test_a_frame_is_drawn_around_the_text_and_its_marks_stay(
    qtbot: QtBot, source: str, word: str
) -> None:
    document = InertDocument()
    answer = StreamedDocument(document, STYLE)
    answer.append(step(0, (source.encode(),), (TokenSource("medusa", 1),), len(source.encode())))
    answer.finish()
    view = TextView(document, "Answer")
    qtbot.addWidget(view)
    view.resize(300, 100)
    view.show()
    found = document.find(word)
    start, end = found.selectionStart(), found.selectionEnd()
    (place,) = view._text_rects(start, end)
    cursor, edges = view.textCursor(), []
    for position in (start, end):
        cursor.setPosition(position)
        at = view.cursorRect(cursor)
        edges.append(at.center().x())
        assert place.top() - 2 <= at.top() <= at.bottom() <= place.bottom() + 2
    if source.isascii():  # between directions, a cursor has two places
        assert edges == pytest.approx([place.left(), place.right()], abs=2)
    else:
        width = view.fontMetrics().horizontalAdvance(word)
        assert place.width() == pytest.approx(width, rel=0.25)
    before = view.viewport().grab().toImage()
    view.frame([(start, end)], QColor("#ff0000"))
    after = view.viewport().grab().toImage()
    changed = {
        (x, y)
        for x in range(after.width())
        for y in range(after.height())
        if after.pixel(x, y) != before.pixel(x, y)
    }
    assert changed
    inner = place.adjusted(3, 3, -3, -3)
    assert not any(inner.contains(x, y) for x, y in changed), "what is framed looks as before"
    outer = place.adjusted(-4, -4, 4, 4)
    assert all(outer.contains(x, y) for x, y in changed)
    view.frame([], QColor("#ff0000"))
    assert view.viewport().grab().toImage() == before


def test_a_frame_goes_on_in_the_next_line(qtbot: QtBot) -> None:
    view = TextView(plain_document("word " * 60), "Answer")
    qtbot.addWidget(view)
    view.resize(300, 100)
    view.show()
    places = list(view._text_rects(0, 299))
    assert len(places) > 3
    assert all(b.top() >= a.bottom() - 1 for a, b in pairwise(places))
    assert sum(place.width() for place in places) > 3 * 200


@pytest.mark.parametrize("char", ["\u202e", "\ufffe", "\ufdd0", "\ud800"])
def test_plain_text_that_begins_with_a_control_character_is_shown(qapp: object, char: str) -> None:
    assert plain_document(f"{char}one\ntwo").toPlainText() == "\ufffdone\ntwo"


def test_accessible_text_keeps_its_first_character(qapp: object) -> None:
    for char in ("\ufeff", "\ufffe"):
        QGuiApplication.clipboard().setText(passed_on(f"{char}one {char}two"))
        assert QGuiApplication.clipboard().text() == f"\ufffdone {char}two"
    assert passed_on("one") == "one"


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "a\n" * 77_000, "\n" * 60_000, "two words " * 90_000]
)
def test_a_very_long_message_is_shown_up_to_a_limit(qapp: object, text: str) -> None:
    document = plain_document(text)
    *lines, note = document.toPlainText().split("\n")
    assert sum(map(len, lines)) <= 20_000
    assert max(map(len, lines)) <= 2_000
    assert len(lines) <= 1_000
    shown = "\n".join(lines) if "\n" in text else "".join(lines)
    assert text.startswith(shown)
    assert note == f"… and {len(text) - len(shown):,} more characters"


def test_a_message_of_normal_length_is_shown_unchanged(qapp: object) -> None:
    text = ("x" * 2_000 + "\n") * 9 + "end"
    assert plain_document(text).toPlainText() == text
