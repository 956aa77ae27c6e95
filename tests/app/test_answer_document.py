"""Law 5: what the document marks is what the steps say was accepted, byte for byte."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import (
    QColor,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from pytestqt.qtbot import QtBot

from app.chat import answer_document
from app.chat.answer_document import AnswerDocument
from app.chat.text_view import InertDocument, TextView, plain_document
from app.markdown.formats import Marking
from app.markdown.style import CodeInks, MarkStyle
from app.markdown.tokens import TokenMap
from medusa_core.messages import (
    GIVEN,
    TARGET,
    GenerateSettings,
    GenerationDone,
    StepDone,
    StepTimes,
    StopReason,
    TokenSource,
)
from tests.app.markdown_samples import TEMPLATES, fill, filled_documents, is_unique_char
from tests.app.markdown_samples import wild_documents as wild_texts
from tests.app.rendered import (
    STYLE,
    blocks_of,
    contents,
    fragments_of,
    underlined_chars,
    utf16_units,
)

DARKER = MarkStyle(
    text="#e8e8e5",
    muted="#a2a5ab",
    link="#7cc0ee",
    rule="#36383c",
    code_background="#232528",
    head_tints=("#16384f", "#44330d", "#0f3d30"),
    head_underlines=("#56b4e9", "#e69f00", "#1fbf91"),
    lookup_tint="#e6e5df",
    lookup_underline="#55585d",
    phrases_tint="#ddddee",
    phrases_underline="#554499",
    inks=CodeInks("#c59de0", "#8fce91", "#9a9da2", "#e0b070", "#7cc0ef"),
    text_families=("Inter",),
    mono_families=("JetBrains Mono",),
    text_size_pt=14,
)


class Answer(NamedTuple):
    """An answer as the engine reports it."""

    steps: list[StepDone]
    done: GenerationDone


NO_TIMES = StepTimes(0, 0, 0, 0)


def step(
    number: int, pieces: tuple[bytes, ...], sources: tuple[TokenSource, ...], num_visible_bytes: int
) -> StepDone:
    ids = tuple(range(len(pieces)))
    return StepDone(
        "s",
        "r",
        number,
        ids,
        pieces,
        sources,
        num_visible_bytes,
        1,
        (TARGET,),
        StepTimes(0, 0, 0, 0),
        0,
        0,
    )


def generation_done(text: str, num_tokens: int = 1) -> GenerationDone:
    ids = tuple(range(num_tokens))
    return GenerationDone(
        "s", "r", text, ids, StopReason.EOS, 1, 0, 0, 1, (1,), 0, 0, 0, 0, GenerateSettings()
    )


def pieces_of(text: str, lengths: list[int]) -> list[bytes]:
    """Cut a text into pieces as a detokenizer does: a character goes to whom completes it."""
    data = text.encode()
    pieces: list[bytes] = []
    start = cut = 0
    for i in range(len(data)):
        length = lengths[i % len(lengths)]
        cut = min(cut + length, len(data))
        end = cut
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[start : max(end, start)])
        start = max(end, start)
        if cut == len(data):
            break
    return pieces


@st.composite
def answers(draw: st.DrawFn, documents: st.SearchStrategy[str]) -> Answer:
    """Answers cut into random tokens of random origin, in random steps; some end at a stop."""
    text = draw(documents)
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))
    heads = draw(st.lists(st.integers(0, 4), min_size=1, max_size=7))
    step_lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    num_held_back = draw(st.integers(0, 4))
    pieces = pieces_of(text, lengths)
    # The stop string cuts inside the last tokens.
    num_stopped_chars = draw(st.integers(0, 5))
    shown = text[: len(text) - num_stopped_chars] if num_stopped_chars < len(text) else text
    return make_answer(pieces, heads, step_lengths, num_held_back, shown)


def make_answer(
    pieces: list[bytes], heads: list[int], step_lengths: list[int], num_held_back: int, shown: str
) -> Answer:
    num_shown_bytes = len(shown.encode())
    ends = list(accumulate(map(len, pieces)))
    steps: list[StepDone] = []
    first = 0
    while first < len(pieces):
        end = min(len(pieces), first + step_lengths[len(steps) % len(step_lengths)])
        sources = tuple(
            TokenSource("medusa", head) if (head := heads[i % len(heads)]) else TARGET
            for i in range(first, end)
        )
        is_last = end == len(pieces)
        visible = ends[end - 1] - (0 if is_last else num_held_back)
        visible = min(max(0, visible), num_shown_bytes)
        steps.append(step(len(steps), tuple(pieces[first:end]), sources, visible))
        first = end
    return Answer(steps, generation_done(shown, len(pieces)))


def stream(answer: Answer, style: MarkStyle = STYLE) -> AnswerDocument:
    view = AnswerDocument(QTextDocument(), style)
    for one in answer.steps:
        view.append(one)
    view.finish(answer.done)
    return view


# Reading the document back ----------------------------------------------------------------------


def expected_chars(answer: Answer) -> list[tuple[str, str]]:
    """The same from the steps alone: no parser, no positions."""
    num_left = len(answer.done.text)
    expected: list[tuple[str, str]] = []
    for one in answer.steps:
        for piece, source in zip(one.pieces, one.sources, strict=True):
            colours = STYLE.head_underlines
            colour = "" if source == TARGET else colours[(source.head - 1) % len(colours)]
            for char in piece.decode():
                if num_left > 0 and is_unique_char(char):
                    expected.append((char, colour))
                num_left -= 1
    return expected


def positions_of_ranges(view: AnswerDocument) -> set[int]:
    return {at for one in view.marked_ranges() for at in range(one.start, one.end)}


def underlined_positions(document: QTextDocument) -> set[int]:
    return {
        at
        for block in blocks_of(document)
        for fragment in fragments_of(block)
        if fragment.underline
        for at in range(fragment.position, fragment.position + utf16_units(fragment.text))
    }


def check_law_5(answer: Answer) -> None:
    view = stream(answer)
    assert underlined_chars(view.document) == expected_chars(answer)
    assert positions_of_ranges(view) == underlined_positions(view.document)
    check_ranges_name_their_token(view, answer)


def check_ranges_name_their_token(view: AnswerDocument, answer: Answer) -> None:
    """Words that a range shows belong to the piece of the token that it names."""
    pieces = [piece for one in answer.steps for piece in one.pieces]
    sources = [source for one in answer.steps for source in one.sources]
    for one in view.marked_ranges():
        cursor = QTextCursor(view.document)
        cursor.setPosition(one.start)
        cursor.setPosition(one.end, QTextCursor.MoveMode.KeepAnchor)
        words = [char for char in cursor.selectedText() if is_unique_char(char)]
        assert set(words) <= set(pieces[one.token_index].decode())
        assert one.source == sources[one.token_index]
        assert one.source != TARGET


# The law ----------------------------------------------------------------------------------------

ALL_KINDS = fill(list(TEMPLATES), ["\n\n"] * len(TEMPLATES))


def answer_of_all_kinds() -> Answer:
    pieces = pieces_of(ALL_KINDS, [4, 1, 7, 3])
    return make_answer(pieces, [0, 1, 2, 0, 3, 1], [1, 3, 2], 0, ALL_KINDS)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(answers(filled_documents()))
def test_what_is_underlined_is_what_was_accepted(qapp: object, answer: Answer) -> None:
    check_law_5(answer)


def test_the_law_holds_for_every_kind_of_block_at_once(qapp: object) -> None:
    answer = answer_of_all_kinds()
    assert {colour for _, colour in expected_chars(answer)} == {"", *STYLE.head_underlines}
    check_law_5(answer)


def test_what_a_lookup_found_is_marked_by_itself(qapp: object) -> None:
    document = QTextDocument()
    view = AnswerDocument(document, STYLE)
    sources = (TokenSource("ngram", 1), TokenSource("medusa+ngram", 2), GIVEN, TARGET)
    view.append(step(0, (b"found ", b"both ", b"given ", b"own"), sources, 20))
    assert [found.source for found in view.marked_ranges()] == list(sources[:2])
    fragments = [found for block in blocks_of(document) for found in fragments_of(block)]
    underlines = {fragment.underline for fragment in fragments}
    assert underlines == {STYLE.lookup_underline, STYLE.underline(2), ""}


def test_marks_differ_by_their_lines_too(qapp: object) -> None:
    document = QTextDocument()
    names = ("ngram", "phrases", "ngram+phrases", "medusa+phrases")
    sources = tuple(TokenSource(name, 1) for name in names)
    AnswerDocument(document, STYLE).append(step(0, (b"a ", b"b ", b"c ", b"d "), sources, 8))
    cursor = QTextCursor(document)
    lines = []
    for place in (1, 3, 5, 7):
        cursor.setPosition(place)
        lines.append(cursor.charFormat().underlineStyle())
    style = QTextCharFormat.UnderlineStyle
    assert lines == [style.DashUnderline, style.DotLine, style.DashUnderline, style.SingleUnderline]


def test_every_character_knows_its_token(qapp: object) -> None:
    document = QTextDocument()
    view = AnswerDocument(document, STYLE)
    pieces = (b"One **tw", "o** 😀".encode(), b" three")
    view.append(step(0, pieces, (TARGET, TokenSource("medusa", 1), TARGET), 30))
    text = document.toPlainText()
    assert text == "One two 😀 three"
    owners = [view.token_at(position) for position in range(len(text) + 2)]
    assert owners == [0] * 6 + [1] * 4 + [2] * 6 + [-1]
    (found,) = view.ranges_of(range(1, 2))
    assert (found.start, found.end) == (6, 10)


class OffByOne(TokenMap):
    """Gives every character to the token of the one after it."""

    def owner(self, char: int) -> int:
        return super().owner(char + 1)


class ForgetsLastHead(TokenMap):
    """Takes head 3 for the target."""

    def owner_and_mark(self, char: int) -> tuple[int, int]:
        token, mark = super().owner_and_mark(char)
        return (token, 0) if mark == 3 else (token, mark)


@pytest.mark.parametrize("fault", [OffByOne, ForgetsLastHead])
def test_the_law_catches_a_wrong_owner(
    qapp: object, monkeypatch: pytest.MonkeyPatch, fault: type[TokenMap]
) -> None:
    monkeypatch.setattr(answer_document, "TokenMap", fault)
    with pytest.raises(AssertionError):
        check_law_5(answer_of_all_kinds())


def test_the_law_catches_positions_that_count_characters_instead_of_utf16_units(
    qapp: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_document, "utf16_length", len)
    with pytest.raises(AssertionError):
        check_law_5(answer_of_all_kinds())


# Streaming --------------------------------------------------------------------------------------


def at_once(answer: Answer) -> AnswerDocument:
    view = AnswerDocument(QTextDocument(), STYLE)
    view.append(*answer.steps)
    view.finish(answer.done)
    return view


@settings(max_examples=60, deadline=None, derandomize=True)
@given(answers(wild_texts()))
def test_streaming_gives_the_document_that_rendering_at_once_gives(
    qapp: object, answer: Answer
) -> None:
    streamed, whole = stream(answer), at_once(answer)
    assert contents(streamed.document) == contents(whole.document)
    assert streamed.marked_ranges() == whole.marked_ranges()
    assert streamed.text == answer.done.text
    assert positions_of_ranges(streamed) == underlined_positions(streamed.document)


def test_streaming_character_by_character_gives_the_same_document(qapp: object) -> None:
    pieces = [char.encode() for char in ALL_KINDS]
    answer = make_answer(pieces, [0, 1, 1, 2], [1], 0, ALL_KINDS)
    assert contents(stream(answer).document) == contents(at_once(answer).document)


def test_only_what_may_be_shown_is_shown(qapp: object) -> None:
    view = AnswerDocument(QTextDocument(), STYLE)
    view.append(step(0, (b"Hello!ST", b"OP"), (TARGET, TokenSource("medusa", 1)), 6))
    assert view.plain_text() == "Hello!"
    assert view.num_tokens == 2
    assert view.marked_ranges() == ()
    view.finish(generation_done("Hello!"))
    assert view.document.toPlainText() == "Hello!"


def test_a_character_cut_by_what_may_be_shown_waits_for_its_last_byte(qapp: object) -> None:
    view = AnswerDocument(QTextDocument(), STYLE)
    euro = "€".encode()
    view.append(step(0, (b"a", euro), (TARGET, TokenSource("medusa", 1)), 2))
    assert view.text == "a"
    view.append(step(1, (b"b",), (TARGET,), 5))
    assert view.text == "a€b"
    assert [(one.start, one.end) for one in view.marked_ranges()] == [(1, 2)]


def test_a_final_text_that_departs_from_its_steps_is_marked_up_to_there(
    qapp: object, caplog: pytest.LogCaptureFixture
) -> None:
    view = AnswerDocument(QTextDocument(), STYLE)
    view.append(step(0, (b"abcd",), (TokenSource("medusa", 1),), 4))
    view.finish(generation_done("abXY"))
    assert view.plain_text() == "abXY"
    assert [(one.start, one.end) for one in view.marked_ranges()] == [(0, 2)]
    assert "departs" in caplog.text


def test_an_answer_from_the_history_has_no_marks(qapp: object) -> None:
    view = AnswerDocument(QTextDocument(), STYLE)
    view.finish(generation_done("# a\n\n*b*"))
    assert view.plain_text() == "a\nb"
    assert view.marked_ranges() == ()


def test_a_broken_off_answer_keeps_what_is_there(qapp: object) -> None:
    view = AnswerDocument(QTextDocument(), STYLE)
    text = b"```python\nx = '''\nfor\n'''"
    view.append(step(0, (text,), (TokenSource("medusa", 1),), len(text)))
    view.finish()
    colours = {
        fragment.look[0] for block in blocks_of(view.document) for fragment in fragments_of(block)
    }
    assert view.plain_text() == "x = '''\nfor\n'''"
    assert STYLE.inks.keyword not in colours


# Looks ------------------------------------------------------------------------------------------


def test_marks_can_be_switched_off_and_on(qapp: object) -> None:
    answer = answer_of_all_kinds()
    view = stream(answer)
    before, ranges = contents(view.document), view.marked_ranges()
    view.set_marking(Marking.OFF)
    assert underlined_positions(view.document) == set()
    assert view.marked_ranges() == ()
    view.set_marking(Marking.HEADS)
    assert contents(view.document) == before
    assert view.marked_ranges() == ranges


def test_another_style_moves_nothing(qapp: object) -> None:
    view = stream(answer_of_all_kinds())
    text, ranges = view.document.toPlainText(), view.marked_ranges()
    view.restyle(DARKER)
    assert view.document.toPlainText() == text
    assert view.marked_ranges() == ranges
    assert {colour for _, colour in underlined_chars(view.document)} == {
        "",
        *DARKER.head_underlines,
    }


def test_an_answer_can_be_restyled_while_it_streams(qapp: object) -> None:
    answer = answer_of_all_kinds()
    view = AnswerDocument(QTextDocument(), DARKER)
    for i, one in enumerate(answer.steps):
        view.append(one)
        if i == len(answer.steps) // 2:
            view.restyle(STYLE)
    view.finish(answer.done)
    assert contents(view.document) == contents(stream(answer).document)


def test_accepted_tokens_are_tinted_in_code_and_keep_its_colours(qapp: object) -> None:
    text = b"```python\ndef f(): pass\n```\n"
    view = AnswerDocument(QTextDocument(), STYLE)
    view.append(step(0, (text,), (TokenSource("medusa", 2),), len(text)))
    view.finish()
    words = [
        fragment
        for block in blocks_of(view.document)
        for fragment in fragments_of(block)
        if fragment.text == "def"
    ]
    assert [(one.underline, one.look[0], one.look[1]) for one in words] == [
        (STYLE.head_underlines[1], STYLE.inks.keyword, STYLE.head_tints[1])
    ]


class Hungry(QTextDocument):
    """Notes what it is asked to load."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for: list[object] = []

    def loadResource(self, kind: int, name: object) -> object:
        self.asked_for.append(name)
        return None


def test_nothing_is_loaded_and_no_html_is_read(qtbot: QtBot) -> None:
    document = Hungry()
    view = AnswerDocument(document, STYLE)
    text = "![pic](file:///etc/passwd) ![web](https://x/y.png) <img src='file:///a'> [l](file:///b)"
    view.finish(generation_done(text))
    document.setTextWidth(300)
    assert document.size().height() > 0
    assert document.asked_for == []
    assert view.plain_text() == "pic web <img src='file:///a'> l"
    links = {one.look[7] for block in blocks_of(document) for one in fragments_of(block)}
    assert links == {""}


def test_steps_touch_only_the_end_of_the_document(qapp: object) -> None:
    """A step changes a few characters at the end, however long the answer already is."""
    document = QTextDocument()
    # Changes are reported once there is a layout to report them to.
    assert document.documentLayout() is not None
    view = AnswerDocument(document, STYLE)
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
    answer = AnswerDocument(document, STYLE)
    answer.append(step(0, (source.encode(),), (TokenSource("medusa", 1),), len(source.encode())))
    answer.finish()
    view = TextView(document, "Answer")
    qtbot.addWidget(view)
    view.resize(300, 100)
    view.show()
    found = document.find(word)
    start, end = found.selectionStart(), found.selectionEnd()
    (place,) = view._places(start, end)
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
    places = list(view._places(0, 299))
    assert len(places) > 3
    assert all(b.top() >= a.bottom() - 1 for a, b in pairwise(places))
    assert sum(place.width() for place in places) > 3 * 200
