"""Words are found in a conversation."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.find.finding import find_all
from tests.support.window.driving import ask
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("cafe", "Café CAFÉ", [(0, 4), (5, 9)]),
        ("é", "e\u0301 E", [(0, 2), (3, 4)]),
        ("b", "😀b", [(2, 3)]),
        ("a b", "a\nb a\u2028b", [(0, 3), (4, 7)]),
        ("aa", "aaaa", [(0, 2), (2, 4)]),
        ("straße", "STRASSE", [(0, 7)]),
        ("عربي", "نص عَرَبي", [(3, 9)]),
        ("", "a", []),
        (" ", "a b", []),
    ],
)
def test_case_and_accents_make_no_difference(
    words: str, text: str, found: list[tuple[int, int]]
) -> None:
    assert find_all(words, text) == found


def test_words_are_found_counted_and_shown(qtbot: QtBot, open_ready: Open) -> None:
    script = Script(answer="One **two** three. " + "words and words. " * 60 + "Tw\u00f6 three")
    window, _ = open_ready(script)
    for _ in range(3):
        ask(qtbot, window, "two?")
    page = window.page
    QTest.keyClick(page.composer.edit, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert page.find_bar.isVisible()
    QTest.keyClicks(page.find_bar.edit, "TWO")
    assert page.find_bar.count.text() == "9 of 9"
    QTest.keyClick(page.find_bar.edit, Qt.Key.Key_Return)
    assert page.find_bar.count.text() == "1 of 9"
    first = page.conversation.messages[0]
    qtbot.waitUntil(lambda: not first.visibleRegion().isEmpty())
    QTest.keyClick(page.find_bar.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert page.find_bar.count.text() == "9 of 9"
    last = window.chat.answers[-1]
    marked = [s.cursor.selectedText() for s in last.view.extraSelections()]
    assert marked == ["two", "Tw\u00f6"]
    QTest.keyClick(window, Qt.Key.Key_F3)
    assert page.find_bar.count.text() == "1 of 9"
    QTest.keyClick(page.find_bar.edit, Qt.Key.Key_Escape)
    assert page.find_bar.isHidden()
    assert not last.view.extraSelections()
    assert page.composer.edit.hasFocus()


def test_typing_with_a_message_focused_goes_to_the_composer(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "one").view.setFocus()
    QTest.keyClick(window.chat.answers[0].view, Qt.Key.Key_H)
    assert window.page.composer.edit.hasFocus()
    assert window.page.composer.edit.toPlainText() == "h"
