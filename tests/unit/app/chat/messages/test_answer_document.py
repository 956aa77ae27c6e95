"""The document of an answer: it grows as the answer does, and can be shown in other ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from app.theme.legend import Mark
from app.theme.text_style import (
    CodeInks,
    Marking,
    MarkStyle,
)
from medusa_core.messages import TARGET, TokenSource
from tests.support.window.engine_events import LEGEND
from tests.support.window.markdown_samples import wild_documents as wild_texts
from tests.support.window.rendered import (
    STYLE,
    blocks_of,
    contents,
    fragments_of,
    plain_text,
    positions_of_ranges,
    underlined_chars,
    underlined_positions,
)
from tests.support.window.streamed_answers import (
    ALL_KINDS,
    Answer,
    StreamedDocument,
    answer_of_all_kinds,
    answers,
    generation_done,
    make_answer,
    pieces_of,
    step,
    stream,
)

SECOND = Mark("medusa", 2)
DARKER = MarkStyle(
    text="#e8e8e5",
    muted="#a2a5ab",
    link="#7cc0ee",
    rule="#36383c",
    code_background="#232528",
    palette={
        "blue": ("#16384f", "#56b4e9"),
        "amber": ("#44330d", "#e69f00"),
        "green": ("#0f3d30", "#1fbf91"),
        "pink": ("#f6e0ed", "#b85c91"),
        "vermilion": ("#fae0d2", "#c65600"),
        "grey": ("#e6e5df", "#55585d"),
        "violet": ("#ddddee", "#554499"),
    },
    legend=LEGEND,
    inks=CodeInks("#c59de0", "#8fce91", "#9a9da2", "#e0b070", "#7cc0ef"),
    text_families=("Inter",),
    mono_families=("JetBrains Mono",),
    text_size_pt=14,
)


def at_once(answer: Answer) -> StreamedDocument:
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(*answer.steps)
    view.finish(answer.done)
    return view


@settings(max_examples=60, deadline=None, derandomize=True)
@given(answers(wild_texts()))
def test_streaming_and_rendering_at_once_give_the_same_document(
    qapp: object, answer: Answer
) -> None:
    offloaded, whole = stream(answer), at_once(answer)
    assert contents(offloaded.document) == contents(whole.document)
    assert offloaded.marked_ranges() == whole.marked_ranges()
    assert offloaded.content.text == answer.done.text
    assert positions_of_ranges(offloaded) == underlined_positions(offloaded.document)


def test_streaming_character_by_character_gives_the_same_document(qapp: object) -> None:
    pieces = [char.encode() for char in ALL_KINDS]
    answer = make_answer(pieces, [0, 1, 1, 2], [1], 0, ALL_KINDS)
    assert contents(stream(answer).document) == contents(at_once(answer).document)


def test_only_displayable_tokens_are_shown(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(step(0, (b"Hello!ST", b"OP"), (TARGET, TokenSource("medusa", 1)), 6))
    assert plain_text(view) == "Hello!"
    assert view.content.num_tokens == 2
    assert view.marked_ranges() == ()
    view.finish(generation_done("Hello!"))
    assert view.document.toPlainText() == "Hello!"


def test_a_character_cut_by_the_display_limit_waits_for_its_last_byte(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    euro = "€".encode()
    view.append(step(0, (b"a", euro), (TARGET, TokenSource("medusa", 1)), 2))
    assert view.content.text == "a"
    view.append(step(1, (b"b",), (TARGET,), 5))
    assert view.content.text == "a€b"
    assert [(one.start, one.end) for one in view.marked_ranges()] == [(1, 2)]


def test_a_final_text_that_differs_from_its_steps_is_marked_up_to_there(
    qapp: object, caplog: pytest.LogCaptureFixture
) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(step(0, (b"abcd",), (TokenSource("medusa", 1),), 4))
    view.finish(generation_done("abXY"))
    assert plain_text(view) == "abXY"
    assert [(one.start, one.end) for one in view.marked_ranges()] == [(0, 2)]
    assert "departs" in caplog.text


def test_a_stored_answer_without_steps_has_no_marks(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    view.finish(generation_done("# a\n\n*b*"))
    assert plain_text(view) == "a\nb"
    assert view.marked_ranges() == ()


def test_an_interrupted_answer_keeps_its_text(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    text = b"```python\nx = '''\nfor\n'''"
    view.append(step(0, (text,), (TokenSource("medusa", 1),), len(text)))
    view.finish()
    colours = {
        fragment.look[0] for block in blocks_of(view.document) for fragment in fragments_of(block)
    }
    assert plain_text(view) == "x = '''\nfor\n'''"
    assert STYLE.inks.keyword not in colours


def test_marks_can_be_switched_off_and_on(qapp: object) -> None:
    answer = answer_of_all_kinds()
    view = stream(answer)
    before, ranges = contents(view.document), view.marked_ranges()
    view.restyle(replace(STYLE, marking=Marking.OFF))
    assert underlined_positions(view.document) == set()
    assert view.marked_ranges() == ()
    view.restyle(replace(STYLE, marking=Marking.HEADS))
    assert contents(view.document) == before
    assert view.marked_ranges() == ranges


def test_another_mark_style_moves_no_text(qapp: object) -> None:
    view = stream(answer_of_all_kinds())
    text, ranges = view.document.toPlainText(), view.marked_ranges()
    view.restyle(DARKER)
    assert view.document.toPlainText() == text
    assert view.marked_ranges() == ranges
    assert {colour for _, colour in underlined_chars(view.document)} == {
        "",
        *(DARKER.underline(Mark("medusa", depth)) for depth in (1, 2, 3)),
    }


def test_an_answer_can_be_restyled_while_it_streams(qapp: object) -> None:
    answer = answer_of_all_kinds()
    view = StreamedDocument(QTextDocument(), DARKER)
    for i, one in enumerate(answer.steps):
        view.append(one)
        if i == len(answer.steps) // 2:
            view.restyle(STYLE)
    view.finish(answer.done)
    assert contents(view.document) == contents(stream(answer).document)


def test_accepted_tokens_are_tinted_in_code_and_keep_its_colours(qapp: object) -> None:
    text = b"```python\ndef f(): pass\n```\n"
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(step(0, (text,), (TokenSource("medusa", 2),), len(text)))
    view.finish()
    words = [
        fragment
        for block in blocks_of(view.document)
        for fragment in fragments_of(block)
        if fragment.text == "def"
    ]
    assert [(one.underline, one.look[0], one.look[1]) for one in words] == [
        (STYLE.underline(SECOND), STYLE.inks.keyword, STYLE.tint(SECOND))
    ]


class Hungry(QTextDocument):
    """Document that records the resources it requests."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for: list[object] = []

    def loadResource(self, kind: int, name: object) -> object:
        self.asked_for.append(name)
        return None


def test_nothing_is_loaded_and_no_html_is_read(qtbot: QtBot) -> None:
    document = Hungry()
    view = StreamedDocument(document, STYLE)
    text = "![pic](file:///etc/passwd) ![web](https://x/y.png) <img src='file:///a'> [l](file:///b)"
    view.finish(generation_done(text))
    document.setTextWidth(300)
    assert document.size().height() > 0
    assert document.asked_for == []
    assert plain_text(view) == "pic web <img src='file:///a'> l"
    links = {one.look[7] for block in blocks_of(document) for one in fragments_of(block)}
    assert links == {""}


def test_steps_touch_only_the_end_of_the_document(qapp: object) -> None:
    """A step changes a few characters at the end, however long the answer already is."""
    document = QTextDocument()
    # Changes are reported once there is a layout to report them to.
    assert document.documentLayout() is not None
    view = StreamedDocument(document, STYLE)
    changes: list[tuple[int, int]] = []
    document.contentsChange.connect(
        lambda at, _removed, added: changes.append((document.characterCount() - at, added))
    )
    paragraph = "one **two** three four.\n\n- five\n- six\n\n"
    pieces = pieces_of(paragraph * 40, [5])
    num_visible = 0
    for i, piece in enumerate(pieces):
        num_visible += len(piece)
        source = TARGET if i % 2 else TokenSource("medusa", 1)
        view.append(step(i, (piece,), (source,), num_visible))
    assert max(from_end for from_end, _ in changes) < 2 * len(paragraph)
    assert max(added for _, added in changes) < 2 * len(paragraph)
