"""However long, wide or deep an answer is, a turn of the event loop has little to do for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from PySide6.QtGui import QTextCursor, QTextDocument, QTextTable
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.chat.messages.round_view import PLAIN_NOTE
from app.markdown.bounds import (
    INLINE_BRACKET_WORK,
    INLINE_CHARS,
    INLINE_OPENERS,
    PIECE_CHARS,
    PIECE_LINES,
    TABLE_CELLS,
    TABLE_COLUMNS,
    Bounds,
)
from app.markdown.model import (
    LINE_BREAK,
    CodeBlock,
    MarkdownBlock,
    Paragraph,
    Table,
    TextStyle,
    runs_of,
)
from app.markdown.parser import MarkdownParser, Parsed
from app.markdown.plain import plain_blocks
from app.markdown.reader import Reader
from app.theme.appearance import Appearance
from app.theme.text_style import Marking
from medusa_core.messages import TARGET, TokenSource
from tests.support.engine.by_turns import by_turns
from tests.support.window.markdown_samples import wild_documents
from tests.support.window.rendered import STYLE, blocks_of, contents, plain_text
from tests.support.window.streamed_answers import (
    ALL_KINDS,
    TIGHT_BOUNDS,
    Answer,
    StreamedDocument,
    StreamedMessage,
    answers,
    ended,
    generation_done,
    step,
    stream,
)

BOUNDS = Bounds()
HEAVY = {
    "a long table": "| a | b | c |\n|---|---|---|\n" + "| some | words | here |\n" * 780,
    "a table of short rows": "|a|b|\n|-|-|\n" + "c\n" * 9_000,
    "a wide table": "|" + "a|" * 1_150 + "\n|" + "-|" * 1_150 + "\n|" + "b|" * 1_150 + "\n",
    "many tables": "|a|\n|-|\n\n" * 4_000,
    "rules of tables": "|-|\n" * 8_000,
    "open brackets": "[" * 20_000,
    "brackets far from each other": ("[" + "a*" * 10) * 1_000,
    "brackets in code": "[`]`a" * 4_000,
    "open links": "[](" * 7_000,
    "nested brackets": "[" * 10_000 + "]" * 10_000,
    "pictures": "![" * 10_000,
    "stars": "*a **b " * 3_000,
    "short lines of stars": "*a **b\n" * 3_000,
    "backticks": "".join("`" * (i % 40 + 1) + "a" for i in range(900)),
    "entities": "&amp;" * 6_000,
    "formulas": "$x^{2}$ and " * 2_000,
    "open formulas": r"$$ \( \[ $ " * 3_000,
    "displayed formulas": "$$\na\n\n" * 4_000,
    "a long word": "a" * 100_000,
    "a long word of wide characters": "😀" * 60_000,
    "a word of a megabyte": "a" * 1_000_000,
    "more paragraphs than are formatted": "one *two* three four five\n\n" * 8_000,
    "short lines": "word\n" * 77_000,
    "short lines that end as on Windows": "word\r\n" * 40_000,
    "lines that end as on old Macs": "word\r" * 40_000,
    "empty lines": "\n" * 60_000,
    "code": "```python\n" + "def f(x): return 1\n" * 5_000,
    "a long line of code": "```python\n" + "x = 1; " * 14_000 + "\n```\n",
    "empty lines of code": "```\n" + "\n" * 60_000,
    "many pieces of code": "```\na\n```\n" * 6_000,
    "one item": "- " + "word\n  " * 5_000,
    "many items": "- a\n" * 20_000,
    "nested items": "".join("  " * (i % 30) + "- a\n" for i in range(3_000)),
    "items of items": ("- " * 60 + "a\n") * 400,
    "a long quotation": "> word\n" * 8_000,
    "nested quotations": "> " * 3_000 + "a\n" + ("> " * 30 + "b\n") * 400,
    "headings": "#\n" * 20_000,
}


class CountingParser(MarkdownParser):
    """Counts the characters that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.num_chars = 0

    def parse(self, text: str, start: int = 0, prefix: str = "") -> Parsed:
        self.num_chars += len(text)
        return super().parse(text, start, prefix)


class CountingSink:
    """Keeps blocks as a document does and counts those that change."""

    def __init__(self) -> None:
        self.frozen: list[MarkdownBlock] = []
        self.tail: list[MarkdownBlock] = []
        self.num_changed = 0
        self.num_chars = 0

    def show_tail(self, blocks: Sequence[MarkdownBlock]) -> None:
        num_same = 0
        for old, new in zip(self.tail, blocks, strict=False):
            if old != new:
                break
            num_same += 1
        changed = blocks[num_same:]
        self.num_changed += len(changed) + len(self.tail) - num_same
        self.num_chars += sum(num_chars(block) for block in changed)
        self.tail = list(blocks)

    def freeze(self, num_blocks: int) -> None:
        self.frozen += self.tail[:num_blocks]
        del self.tail[:num_blocks]

    @property
    def blocks(self) -> list[MarkdownBlock]:
        return [*self.frozen, *self.tail]


def num_chars(block: MarkdownBlock) -> int:
    return sum(len(run.text) for line in runs_of(block) for run in line)


def check_turn(parser: CountingParser, sink: CountingSink) -> None:
    """Little was done since the last time."""
    # The open block is read once to show it, and once at each place where bounds are judged.
    open_chars = BOUNDS.code + BOUNDS.line + BOUNDS.check
    num_readings = 1 + max(1, BOUNDS.turn // BOUNDS.check)
    assert parser.num_chars <= num_readings * open_chars
    assert sink.num_chars <= open_chars + num_readings * BOUNDS.turn
    assert sink.num_changed <= 4 * BOUNDS.turn
    parser.num_chars = sink.num_chars = sink.num_changed = 0


@pytest.mark.parametrize(("name", "read"), by_turns(list(HEAVY), ["at once", "streamed"]))
def test_one_event_loop_turn_does_little_work(name: str, read: str) -> None:
    {"at once": check_at_once, "streamed": check_streamed}[read](name)


def check_at_once(name: str) -> None:
    parser, sink = CountingParser(), CountingSink()
    reader = Reader(sink, HEAVY[name], parser)
    reader.complete()
    num_turns = 0
    while reader.is_behind:
        reader.read_on()
        check_turn(parser, sink)
        num_turns += 1
    # A turn that ends where plain text begins is a short one.
    assert num_turns <= len(HEAVY[name]) // BOUNDS.turn + 2
    check_blocks(sink.blocks)


def check_streamed(name: str) -> None:
    parser, sink = CountingParser(), CountingSink()
    reader = Reader(sink, parser=parser)
    # A few times the longest block that may still change.
    text = HEAVY[name][: 60_000 if "```" in HEAVY[name] else 24_000]
    for at in range(0, len(text), 500):
        reader.text = text[: at + 500]
        reader.read_on()
        assert not reader.is_behind or reader.plain_start is not None
        check_turn(parser, sink)
    check_blocks(sink.blocks)


def check_blocks(blocks: list[MarkdownBlock]) -> None:
    """No block takes a layout long."""
    for block in blocks:
        if isinstance(block, Table):
            assert len(block.alignments) <= TABLE_COLUMNS
            assert (len(block.rows) - 1) * len(block.alignments) <= TABLE_CELLS
        elif isinstance(block, Paragraph) and block.goes_on:
            assert num_chars(block) <= PIECE_CHARS
            assert "".join(run.text for run in block.runs).count(LINE_BREAK) < PIECE_LINES
        elif isinstance(block, Paragraph):
            assert num_chars(block) <= BOUNDS.block + BOUNDS.line + BOUNDS.check
        elif isinstance(block, CodeBlock):
            assert num_chars(block) <= BOUNDS.code + BOUNDS.line + BOUNDS.check
            assert len(block.lines) <= BOUNDS.lines + BOUNDS.check


def test_an_answer_of_normal_size_is_formatted_to_its_end() -> None:
    code = "```python\n" + "    value = compute(value, 1)\n" * 800 + "```\n\n"
    table = "| a | b | c | d |\n|---|---|---|---|\n" + "| one | two | three | four |\n" * 90
    items = "".join(f"{i}. item **{i}** of many\n" for i in range(1, 1_000))
    text = code + table + "\n" + items + "\n" + "A paragraph. " * 400 + "\n\n" + ALL_KINDS
    reader = Reader(CountingSink(), text)
    while reader.is_behind:
        reader.read_on()
    assert reader.plain_start is None


@pytest.mark.parametrize(
    ("text", "plain_start"),
    [
        ("a" * 12, None),
        ("a" * 13, 12),
        ("b\n" + "a" * 13, 14),
        ("b\n" + "a" * 12 + "\nc", None),
        ("one\ntwo\n" * 20, 48),
        ("one\n\ntwo\n\n" * 40, 209),
        ("```\n" + "a = 1\n" * 20, 70),
    ],
)
def test_beyond_a_limit_text_is_shown_unformatted(text: str, plain_start: int | None) -> None:
    bounds = TIGHT_BOUNDS[0]
    for share in (1, 3, len(text)):
        reader = Reader(CountingSink(), bounds=bounds)
        for at in range(0, len(text), share):
            reader.text = text[: at + share]
            reader.read_on()
        while reader.is_behind:
            reader.read_on()
        assert reader.plain_start == plain_start


def test_a_table_that_is_too_wide_is_shown_as_text() -> None:
    row = "|" + "a|" * (TABLE_COLUMNS + 1) + "\n"
    rule = "|" + "-|" * (TABLE_COLUMNS + 1) + "\n"
    (block,) = MarkdownParser().parse(row + rule + row).blocks
    assert isinstance(block, Paragraph)
    assert "".join(run.text for run in block.runs).split(LINE_BREAK) == [
        row.strip(),
        rule.strip(),
        row.strip(),
    ]


def test_what_follows_the_last_row_of_a_long_table_is_text() -> None:
    num_rows = TABLE_CELLS // 2 + 3
    rows = [f"| {i} | x |" for i in range(num_rows)]
    table, rest = MarkdownParser().parse("\n".join(["| a | b |", "|---|---|", *rows])).blocks
    assert isinstance(table, Table)
    assert len(table.rows) == 1 + TABLE_CELLS // 2
    assert isinstance(rest, Paragraph)
    assert "".join(run.text for run in rest.runs) == LINE_BREAK.join(rows[-3:])


@pytest.mark.parametrize(
    ("few", "many"),
    [
        ("*a* " * (INLINE_OPENERS // 2), "*a* " * (INLINE_OPENERS // 2 + 1)),
        ("*a* " + "[" * 498, "*a* " + "[" * 499),
        ("*a* " + "b" * (INLINE_CHARS - 4), "*a* " + "b" * (INLINE_CHARS - 3)),
    ],
)
def test_text_with_too_much_markup_is_shown_unformatted(few: str, many: str) -> None:
    assert 498 * 502 <= INLINE_BRACKET_WORK < 499 * 503
    for text, is_formatted in ((few, True), (many, False)):
        text = text.strip()
        (block,) = MarkdownParser().parse(text).blocks
        assert isinstance(block, Paragraph)
        styles = {run.style for run in block.runs}
        assert (TextStyle.EMPHASIS in styles) is is_formatted
        if not is_formatted:
            assert [(run.text, run.start, run.end) for run in block.runs] == [(text, 0, len(text))]


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_pieces_of_unformatted_text_add_up_to_the_whole(line_end: str) -> None:
    lines = [f"{i} *as* it [stands] " + "x" * (i % 97) for i in range(400)] + ["y" * 9_000, "", "z"]
    text = line_end.join(lines)
    pieces = plain_blocks(text, 0)
    shown = [run for piece in pieces for run in piece.runs]
    for run in shown:
        for char, source in zip(run.text, text[run.start : run.end], strict=True):
            assert char == source or (char == LINE_BREAK and source in "\r\n")
    whole = "\n".join("".join(run.text for run in piece.runs) for piece in pieces)
    whole = whole.replace(LINE_BREAK, "\n")
    cuts = whole.replace("\n", "")
    assert cuts == "".join(lines)
    # Only the line that is longer than a piece is cut.
    assert whole.count("\n") == len(lines) - 1 + 9_000 // PIECE_CHARS


@settings(max_examples=150, deadline=None, derandomize=True)
@given(answers(wild_documents()))
def test_a_bounded_answer_looks_the_same_streamed_and_at_once(qapp: object, answer: Answer) -> None:
    for bounds in TIGHT_BOUNDS:
        pieces = [piece for one in answer.steps for piece in one.pieces]
        sources = [source for one in answer.steps for source in one.sources]
        num_visible = len(answer.done.text.encode())
        at_once = step(0, tuple(pieces), tuple(sources), num_visible)
        expected = stream(Answer([at_once] if pieces else [], answer.done), bounds=bounds)
        view = stream(answer, bounds=bounds)
        assert contents(view.document) == contents(expected.document)
        assert view.marked_ranges() == expected.marked_ranges()
        assert view.is_plain_at_end == expected.is_plain_at_end


def test_a_long_answer_is_rewritten_over_several_event_loop_turns(qapp: object) -> None:
    text = "one **two** three.\n\n" * 3_000
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(step(0, (text.encode(),), (TokenSource("medusa", 1),), len(text)))
    ended(view, generation_done(text))
    before = contents(view.document)
    view.restyle(replace(STYLE, marking=Marking.OFF))
    assert view.is_behind
    assert view.content.text == text
    view.restyle(replace(STYLE, marking=Marking.HEADS))
    while view.is_behind:
        view.show_more()
    assert contents(view.document) == before


def test_the_document_of_a_megabyte_has_small_blocks(qapp: object) -> None:
    for name in ("a word of a megabyte", "short lines"):
        view = StreamedDocument(QTextDocument(), STYLE)
        ended(view, generation_done(HEAVY[name]))
        assert view.is_plain_at_end
        lengths = [block.length() for block in blocks_of(view.document)]
        assert max(lengths) <= BOUNDS.block + BOUNDS.line
        assert max(lengths[10:]) <= PIECE_CHARS + 1
        assert plain_text(view).replace("\n", "") == HEAVY[name].replace("\n", "")


def test_the_document_of_a_long_table_has_few_cells(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    ended(view, generation_done(HEAVY["a long table"]))
    tables = {QTextCursor(block).currentTable() for block in blocks_of(view.document)} - {None}
    assert tables
    for table in tables:
        assert isinstance(table, QTextTable)
        assert (table.rows() - 1) * table.columns() <= TABLE_CELLS


def test_a_long_line_is_cut_between_words_wherever_unformatted_text_begins() -> None:
    text = " ".join(f"bridge{number}" for number in range(4_000))
    pieces = [text[:1_000], text[1_000:9_000], text[9_000:9_001], text[9_001:]]
    shown = []
    for parts in ([text], pieces):
        view, end = StreamedDocument(QTextDocument(), replace(STYLE, marking=Marking.OFF)), 0
        for number, part in enumerate(parts):
            end += len(part)
            view.append(step(number, (part.encode(),), (TARGET,), end))
        view.finish()
        while view.is_behind:
            view.show_more()
        assert view.is_plain_at_end
        shown.append(plain_text(view).split("\n"))
    assert shown[0] == shown[1]
    assert len(shown[0]) > 10
    assert " ".join(shown[0]).split() == text.split(), "no word is cut"


def test_a_message_shows_a_long_answer_over_the_following_event_loop_turns(
    qtbot: QtBot, appearance: Appearance
) -> None:
    message = StreamedMessage(appearance)
    qtbot.addWidget(message)
    text = "word" * 4_000
    message.append(step(0, (text.encode(),), (TARGET,), len(text)))
    message.finish()
    assert message.document.is_behind
    qtbot.waitUntil(lambda: not message.document.is_behind)
    assert plain_text(message.document).replace("\n", "") == text
    assert PLAIN_NOTE in {label.text() for label in message.findChildren(QLabel) if shown(label)}


def shown(widget: QWidget) -> bool:
    return not widget.isHidden()
