"""Law 5: what the document marks is what the steps say was accepted, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextDocument

from app.chat.messages import answer_document
from app.chat.messages.answer_document import AnswerDocument
from app.markdown.bounds import Bounds
from app.theme.legend import Mark
from medusa_core.chats.answer_text import AnswerText
from medusa_core.messages import GIVEN, TARGET, TokenSource
from tests.support.window import streamed_answers
from tests.support.window.markdown_samples import filled_documents, is_unique_char
from tests.support.window.rendered import (
    STYLE,
    blocks_of,
    fragments_of,
    plain_text,
    positions_of_ranges,
    underlined_chars,
    underlined_positions,
)
from tests.support.window.streamed_answers import (
    TIGHT_BOUNDS,
    Answer,
    StreamedDocument,
    answer_of_all_kinds,
    answers,
    make_answer,
    step,
    stream,
)

WORDS = ("一丁", "丂七 ", "**丄丅**", "丆万\n\n", "丈三")
HEAD_LINES = [STYLE.underline(Mark("medusa", depth)) for depth in range(1, 6)]


def expected_chars(answer: Answer) -> list[tuple[str, str]]:
    """Return the expected characters from the steps alone, without parser and positions."""
    num_left = len(answer.done.text)
    expected: list[tuple[str, str]] = []
    for one in answer.steps:
        for piece, source in zip(one.pieces, one.sources, strict=True):
            colours = HEAD_LINES
            colour = "" if source == TARGET else colours[(source.head - 1) % len(colours)]
            for char in piece.decode():
                if num_left > 0 and is_unique_char(char):
                    expected.append((char, colour))
                num_left -= 1
    return expected


def check_law_5(answer: Answer, bounds: Bounds | None = None) -> None:
    view = stream(answer, bounds=bounds)
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


@settings(max_examples=60, deadline=None, derandomize=True)
@given(answers(filled_documents()))
def test_underlined_tokens_are_the_accepted_ones(qapp: object, answer: Answer) -> None:
    check_law_5(answer)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(answers(filled_documents()))
def test_the_law_holds_in_unformatted_text(qapp: object, answer: Answer) -> None:
    for bounds in TIGHT_BOUNDS:
        check_law_5(answer, bounds)


def test_the_law_holds_for_every_kind_of_block_at_once(qapp: object) -> None:
    answer = answer_of_all_kinds()
    assert {colour for _, colour in expected_chars(answer)} == {"", *HEAD_LINES[:3]}
    check_law_5(answer)


def test_tokens_of_a_suffix_match_have_its_own_mark(qapp: object) -> None:
    document = QTextDocument()
    view = StreamedDocument(document, STYLE)
    sources = (TokenSource("suffix", 1), TokenSource("medusa+suffix", 2), GIVEN, TARGET)
    view.append(step(0, (b"found ", b"both ", b"given ", b"own"), sources, 20))
    assert [found.source for found in view.marked_ranges()] == list(sources[:2])
    fragments = [found for block in blocks_of(document) for found in fragments_of(block)]
    underlines = {fragment.underline for fragment in fragments}
    assert underlines == {
        STYLE.underline(Mark("suffix", 1)),
        STYLE.underline(Mark("medusa", 2)),
        "",
    }


def test_marks_also_differ_by_their_line_styles(qapp: object) -> None:
    document = QTextDocument()
    names = ("suffix", "phrases", "phrases+suffix", "medusa+phrases")
    sources = tuple(TokenSource(name, 1) for name in names)
    StreamedDocument(document, STYLE).append(step(0, (b"a ", b"b ", b"c ", b"d "), sources, 8))
    cursor = QTextCursor(document)
    lines = []
    for place in (1, 3, 5, 7):
        cursor.setPosition(place)
        lines.append(cursor.charFormat().underlineStyle())
    style = QTextCharFormat.UnderlineStyle
    assert lines == [style.DashUnderline, style.DotLine, style.DotLine, style.SingleUnderline]


def test_every_character_is_mapped_to_its_token(qapp: object) -> None:
    document = QTextDocument()
    view = StreamedDocument(document, STYLE)
    pieces = (b"One **tw", "o** 😀".encode(), b" three")
    view.append(step(0, pieces, (TARGET, TokenSource("medusa", 1), TARGET), 30))
    text = document.toPlainText()
    assert text == "One two 😀 three"
    owners = [view.token_at(position) for position in range(len(text) + 2)]
    assert owners == [0] * 6 + [1] * 4 + [2] * 6 + [-1]
    (found,) = view.ranges_of(range(1, 2))
    assert (found.start, found.end) == (6, 10)


@pytest.mark.parametrize("char", ["\ufeff", "\ufffe", "\uffff", "\ufdd0", "\ufffc", "\0"])
@pytest.mark.parametrize("bounds", [Bounds(), *TIGHT_BOUNDS])
def test_characters_that_qt_replaces_shift_no_mark(qapp: object, char: str, bounds: Bounds) -> None:
    """Each piece begins with one, so that each text given to Qt does."""
    shown = {"\uffff": "\uffff", "\ufeff": "\u2060"}.get(char, "\ufffd")
    pieces = [f"{char}{word}".encode() for word in WORDS]
    answer = make_answer(pieces, [0, 1, 2], [2], 0, b"".join(pieces).decode())
    check_law_5(answer, bounds)
    view = stream(answer, bounds=bounds)
    seen = [one for one in plain_text(view) if one == shown or is_unique_char(one)]
    assert seen == [one for word in WORDS for one in (shown, *word) if one not in "* \n"]


@pytest.mark.parametrize(
    "entity", ["&#xFEFF;", "&#10;", "&#13;", "&NewLine;", "&#x2029;", "&#xFFFC;"]
)
def test_named_entities_shift_no_mark(qapp: object, entity: str) -> None:
    pieces = [entity.encode(), "一丁".encode(), f"{entity}丂".encode(), "七".encode()]
    answer = make_answer(pieces, [0, 1, 2], [2], 0, b"".join(pieces).decode())
    check_law_5(answer)
    view = stream(answer)
    assert [char for char in plain_text(view) if is_unique_char(char)] == list("一丁丂七")
    assert len(plain_text(view)) == 6


class OffByOne(AnswerText):
    """Gives every character to the token of the one after it."""

    def owner(self, char: int) -> int:
        return super().owner(char + 1)


class ForgetsLastHead(AnswerText):
    """Takes head 3 for the target."""

    def source(self, token: int) -> TokenSource:
        source = super().source(token)
        return TARGET if source.head == 3 else source


@pytest.mark.parametrize("fault", [OffByOne, ForgetsLastHead])
def test_the_law_catches_a_wrong_owner(
    qapp: object, monkeypatch: pytest.MonkeyPatch, fault: type[AnswerText]
) -> None:
    monkeypatch.setattr(streamed_answers, "AnswerText", fault)
    with pytest.raises(AssertionError):
        check_law_5(answer_of_all_kinds())


def test_the_law_catches_positions_that_count_characters_instead_of_utf16_units(
    qapp: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_document, "utf16_length", len)
    with pytest.raises(AssertionError):
        check_law_5(answer_of_all_kinds())
