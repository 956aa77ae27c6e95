"""What is copied of an answer, for other programs."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from app.chat.messages.text_view import InertDocument, TextView
from medusa_core.messages import TARGET
from tests.support.window.rendered import STYLE
from tests.support.window.streamed_answers import StreamedDocument, step


def shown(qtbot: QtBot, source: str) -> TextView:
    document = InertDocument()
    answer = StreamedDocument(document, STYLE)
    answer.append(step(0, (source.encode(),), (TARGET,), len(source.encode())))
    answer.finish()
    view = TextView(document, "Answer")
    view.copy_by(answer.selected)
    qtbot.addWidget(view)
    return view


def copied(qtbot: QtBot, source: str, first: str = "", last: str = "") -> tuple[str, str]:
    """Text and HTML of all of an answer, or of what two words enclose."""
    view = shown(qtbot, source)
    cursor = view.textCursor()
    if first:
        cursor.setPosition(view.document().find(first).selectionStart())
        end = view.document().find(last).selectionEnd()
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    else:
        cursor.select(QTextCursor.SelectionType.Document)
    view.setTextCursor(cursor)
    data = view.createMimeDataFromSelection()
    return data.text(), data.html()


TABLE = "| name | n |\n|---|--:|\n| a<br>b | **1** |\n|  | 2 |"


def test_a_table_is_copied_with_tabs_and_as_a_table(qtbot: QtBot) -> None:
    text, html = copied(qtbot, f"So:\n\n{TABLE}\n\nThat.")
    assert text == "So:\nname\tn\na b\t1\n\t2\nThat."
    assert html == (
        '<p>So:</p><table border="1"><tr><th>name</th><th style="text-align:right">n</th></tr>'
        '<tr><td>a<br>b</td><td style="text-align:right"><strong>1</strong></td></tr>'
        '<tr><td></td><td style="text-align:right">2</td></tr></table><p>That.</p>'
    )


def test_a_right_to_left_table_is_copied_in_reading_order(qtbot: QtBot) -> None:
    text, html = copied(qtbot, "| שם | גיל |\n|---|:-:|\n| דנה | 30 |")
    assert text == "שם\tגיל\nדנה\t30"
    assert '<table border="1" dir="rtl"><tr><th>שם</th>' in html
    assert '<td>דנה</td><td style="text-align:center">30</td>' in html


def test_a_list_is_copied_with_its_numbers_and_bullets(qtbot: QtBot) -> None:
    text, html = copied(
        qtbot, "3. one\n4. two\n   - deep\n     more\n\n     again\n5. three\n\nend"
    )
    assert text == "3. one\n4. two\n  • deep\n    more\n    again\n5. three\nend"
    assert html == (
        '<ol start="3"><li><p>one</p></li><li><p>two</p><ul><li><p>deep<br>more</p><p>again</p>'
        "</li></ul></li><li><p>three</p></li></ol><p>end</p>"
    )


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("# a\n\n---\n\n`x<y` [z](http://b)",
         "<h1>a</h1><hr><p><code>x&lt;y</code> <a href=\"http://b\">z</a></p>"),
        ("> a\n>\n> - b\n\nc",
         "<blockquote><p>a</p><ul><li><p>b</p></li></ul></blockquote><p>c</p>"),
        ("- a\n\n1. b", "<ul><li><p>a</p></li></ul><ol><li><p>b</p></li></ol>"),
        ("```\na\n\nb\n```", "<pre><code>a\n\nb</code></pre>"),
        ("H<sub>2</sub>O **a *b***",
         "<p>H<sub>2</sub>O <strong>a </strong><em><strong>b</strong></em></p>"),
        ("so $x^2$", "<p>so $x^2$</p>"),
    ],
)  # fmt: skip
def test_every_kind_of_block_is_copied_as_html(qtbot: QtBot, source: str, html: str) -> None:
    assert copied(qtbot, source)[1] == html


def test_partially_selected_items_are_copied_without_bullets(qtbot: QtBot) -> None:
    assert copied(qtbot, "- one two\n- three", "two", "three")[0] == "two\n• three"
    assert copied(qtbot, "- one two\n- three", "one", "two")[0] == "one two"
    assert copied(qtbot, "- one two\n- three", "three", "three")[0] == "three"


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        ("bb", "dd", "bb\ndd"),
        ("dd", "ee", "cc\tdd\nee\tff"),  # as it is highlighted: whole cells
        ("cc", "cc", "cc"),
        ("before", "cc", "before\naa\tbb\ncc\tdd\nee\tff"),
    ],
)
def test_cells_of_a_table_are_copied_as_such(
    qtbot: QtBot, first: str, last: str, text: str
) -> None:
    source = "before\n\n| aa | bb |\n|---|---|\n| cc | dd |\n| ee | ff |"
    found, html = copied(qtbot, source, first, last)
    assert found == text
    assert html.count("<td>") + html.count("<th>") == len(text.replace("before", "").split())
