"""Parsing: every rendered character knows its source."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings

from app.markdown import highlight
from app.markdown.highlight import (
    MAX_LINE_CHARS,
    MAX_WHOLE_CHARS,
    MAX_WHOLE_LINES,
    MOST_S,
    MOST_SLOW_CALLS,
    Highlighter,
    line_inks,
)
from app.markdown.model import CodeBlock, MarkdownBlock, Paragraph, Run, Table, TextStyle, runs_of
from app.markdown.parser import MarkdownParser
from app.theme.text_style import Ink
from tests.support.window.markdown_samples import filled_documents, is_unique_char, wild_documents

REPLACED = dict.fromkeys("\0\ufdd0\ufdd1\ufffc\ufffe\u202e", "\ufffd") | {"\ufeff": "\u2060"}
# Shown as a sign in code and links, and invisible elsewhere.
ISOLATES = "\u2066\u2067\u2068\u2069"
LINE_ENDS = "\n\r\u2029"


def parse(text: str) -> tuple[MarkdownBlock, ...]:
    return MarkdownParser().parse(text).blocks


def all_runs(blocks: tuple[MarkdownBlock, ...]) -> list[Run]:
    """Return all runs in reading order."""
    return [run for block in blocks for line in lines_read(block) for run in line]


def lines_read(block: MarkdownBlock) -> Iterator[tuple[Run, ...]]:
    if isinstance(block, Table):
        yield from (cell for row in block.rows for cell in row)
    else:
        yield from runs_of(block)


def shown_with_source(text: str) -> list[tuple[str, str]]:
    return [(run.text, text[run.start : run.end]) for run in all_runs(parse(text))]


def is_faithful(shown: str, source: str) -> bool:
    """Whether a character may be shown for a source character."""
    if shown == source or REPLACED.get(source) == shown:
        return True
    if source in ISOLATES and shown == "\ufffd":
        return True
    # A line end is shown as a break, and in code spans as a space.
    return source in LINE_ENDS and shown in "\u2028 "


def check_runs(text: str, blocks: tuple[MarkdownBlock, ...]) -> None:
    for run in all_runs(blocks):
        source = text[run.start : run.end]
        if run.is_one_to_one:
            for shown, char in zip(run.text, source, strict=True):
                assert is_faithful(shown, char), (run, source)
        else:
            is_entity = source.startswith("&") and source.endswith(";")
            is_tab = source == "\t" and run.text.strip(" ") == ""
            is_break = run.text == "\u2028" and (source[0] == "\\" or source.lower() == "<br>")
            assert is_entity or is_tab or is_break, (run, source)


def check_order(blocks: tuple[MarkdownBlock, ...]) -> None:
    """No source character has two places, and places come in source order."""
    for left, right in pairwise(all_runs(blocks)):
        assert left.end <= right.start, (left, right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a **b** c", [("a ", "a "), ("b", "b"), (" c", " c")]),
        ("**a *b***", [("a ", "a "), ("b", "b")]),
        ("2 ** 3 * 4", [("2 ** 3 * 4", "2 ** 3 * 4")]),
        ("`` a`b ``", [("a`b", "a`b")]),
        ("x &amp; y", [("x ", "x "), ("&", "&amp;"), (" y", " y")]),
        ("x &#128512;", [("x ", "x "), ("😀", "&#128512;")]),
        (r"\*a\q", [(r"*a\q", r"*a\q")]),
        ("[a](javascript:b)", [("a", "a")]),
        ("![a *b*](c)", [("a ", "a "), ("b", "b")]),
        ("<http://a/%41>", [("http://a/%41", "http://a/%41")]),
        ("a  \nb", [("a", "a"), ("\u2028b", "\nb")]),
        ("a\\\nb", [("a", "a"), ("\u2028", "\\\n"), ("b", "b")]),
        ("# a #", [("a", "a")]),
        ("a\nb\n===", [("a\u2028b", "a\nb")]),
        ("- a\n  - b", [("a", "a"), ("b", "b")]),
        ("> a\n> b", [("a\u2028", "a\n"), ("b", "b")]),
        ("[a]: http://b", [("[a]: http://b", "[a]: http://b")]),
        ("<i>a</i>", [("<i>a</i>", "<i>a</i>")]),
        ("```x\na\n\tb\n```", [("a", "a"), ("\tb", "\tb")]),
        ("-\t\tb", [("  ", "\t"), ("b", "b")]),
        ("a\r\nb", [("a", "a"), ("\u2028b", "\nb")]),
        ("😀**é**", [("😀", "😀"), ("é", "é")]),
        (
            "a<br>b<BR />c",
            [("a", "a"), ("\u2028", "<br>"), ("b", "b"), ("\u2028", "<BR />"), ("c", "c")],
        ),
        ("H<sub>2</sub>O", [("H", "H"), ("2", "2"), ("O", "O")]),
        (
            "`a<br>b` <sub> <sup></sup>",
            [("a<br>b", "a<br>b"), (" <sub> <sup></sup>", " <sub> <sup></sup>")],
        ),
    ],
)
def test_a_rendered_character_is_mapped_to_its_source(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert shown_with_source(text) == expected


def test_a_bar_that_is_escaped_stays_inside_its_cell() -> None:
    text = "| a \\| b | c |\n|--|:-:|\n| d |\n"
    (table,) = parse(text)
    assert isinstance(table, Table)
    assert [["".join(run.text for run in cell) for cell in row] for row in table.rows] == [
        ["a | b", "c"],
        ["d", ""],
    ]
    assert table.alignments == ("", "center")
    check_runs(text, (table,))


def test_only_web_links_can_be_followed() -> None:
    text = "[a](http://x) [b](HTTPS://y) [c](file:///z) [d](javascript:e) <mailto:f@g.h>"
    links = {run.text: run.href for run in all_runs(parse(text)) if run.text.strip()}
    assert links == {"a": "http://x", "b": "HTTPS://y", "c": "", "d": "", "mailto:f@g.h": ""}


def test_nested_styles_end_where_their_own_markup_ends() -> None:
    runs = all_runs(parse("**a __b__ c** d"))
    styles = {run.text.strip(): run.style for run in runs}
    assert styles["c"] == TextStyle.STRONG
    assert styles["d"] == TextStyle.PLAIN


def test_superscript_and_subscript_keep_their_other_styles() -> None:
    runs = all_runs(parse("**mc<sup>2</sup>** x<SUB>*i*</SUB>"))
    styles = {run.text.strip(): run.style for run in runs}
    assert styles["2"] == TextStyle.STRONG | TextStyle.SUPERSCRIPT
    assert styles["i"] == TextStyle.EMPHASIS | TextStyle.SUBSCRIPT
    assert styles["x"] == TextStyle.PLAIN


def test_a_table_from_right_to_left_is_laid_out_in_reverse() -> None:
    (table,) = parse("| שם | Alter |\n|:--|---|\n| a | b |\n")
    assert isinstance(table, Table)
    assert table.is_rtl
    assert ["".join(run.text for run in cell) for cell in runs_of(table)] == [
        *("Alter", "שם"),
        *("b", "a"),
    ]
    for text in ("| name | שם |\n|---|---|\n", "| 1 | - |\n|---|---|\n"):
        (other,) = parse(text)
        assert isinstance(other, Table)
        assert not other.is_rtl


def test_a_line_break_in_a_cell_stays_in_that_cell() -> None:
    (table,) = parse("| a | b |\n|---|---|\n| x<br>y | H<sub>2</sub>O |\n")
    assert isinstance(table, Table)
    assert ["".join(run.text for run in cell) for cell in table.rows[1]] == ["x\u2028y", "H2O"]


@pytest.mark.parametrize(
    ("text", "stressed"),
    [
        ("**「中文」**后面", "「中文」"),
        ("**中文：**后面", "中文："),
        ("前面**“中文”**后面", "“中文”"),
        ("**Markdown（マークダウン）**は軽量です", "Markdown（マークダウン）"),
        ("**不变。**源码", "不变。"),
        ("*「강조」*입니다", "「강조」"),
        ("**안녕(hello)**하세요", "안녕(hello)"),
        ("~~削除。~~後", "削除。"),
        ("**葛󠄀（**城", "葛󠄀（"),
        ("**สำคัญ:**ข้อความ", "สำคัญ:"),
        ("**重要！**😀", "重要！"),
    ],
)
def test_emphasis_is_recognised_beside_scripts_without_spaces(text: str, stressed: str) -> None:
    assert [run.text for run in all_runs(parse(text)) if run.style] == [stressed]


@pytest.mark.parametrize(
    "text", ['a**"b"**c', "2 ** 3 ** 4", "_「中文」_后面", "中文** 后面 **中文", "a**.b**"]
)
def test_asterisks_that_enclose_nothing_are_kept(text: str) -> None:
    assert not any(run.style for run in all_runs(parse(text)))


def test_bidirectional_isolates_are_invisible_in_prose_and_visible_in_code() -> None:
    text = "a\u2067b\u2069 `c\u2067d` \u202ee\n\n```\nf\u2066g\n```"
    shown = "".join(run.text for run in all_runs(parse(text)))
    assert shown == "a\u2067b\u2069 c\ufffdd \ufffdef\ufffdg"
    (link,) = [run for run in all_runs(parse("[a\u2067b](http://c)")) if run.href]
    assert link.text == "a\ufffdb"


def test_list_items_have_their_number_and_depth() -> None:
    blocks = parse("7. a\n8. b\n   - c\n\n     d\n")
    places = [block.place for block in blocks]
    markers = [(p.list_depth, p.marker.number if p.marker else None) for p in places]
    assert markers == [(1, 7), (1, 8), (2, 0), (2, None)]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(wild_documents())
def test_rendered_runs_equal_their_source_in_random_documents(text: str) -> None:
    blocks = parse(text)
    check_runs(text, blocks)
    check_order(blocks)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(filled_documents())
def test_every_word_of_a_document_is_shown_once_with_its_position(text: str) -> None:
    blocks = parse(text)
    check_runs(text, blocks)
    check_order(blocks)
    shown = [
        (char, run.start + i)
        for run in all_runs(blocks)
        for i, char in enumerate(run.text)
        if is_unique_char(char)
    ]
    assert shown == [(char, i) for i, char in enumerate(text) if is_unique_char(char)]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(wild_documents())
def test_finished_blocks_are_parsed_as_in_the_whole_document(text: str) -> None:
    """Parsing part by part, each time from where the last part was settled, changes nothing."""
    parser = MarkdownParser()
    kept: list[MarkdownBlock] = []
    at, prefix = 0, ""
    for end in [i + 1 for i, char in enumerate(text) if char == "\n"]:
        parsed = parser.parse(text[at:end], at, prefix)
        kept.extend(parsed.blocks[: parsed.frozen.num_blocks])
        if parsed.frozen.end > at:
            at, prefix = parsed.frozen.end, parsed.frozen.prefix
    kept.extend(parser.parse(text[at:], at, prefix).blocks)
    assert tuple(kept) == parse(text)


def test_a_long_list_is_finished_item_by_item() -> None:
    text = "".join(f"{i}. item {i}\n" for i in range(3, 40))
    settled = MarkdownParser().parse(text).frozen
    assert text[settled.end :] == "39. item 39\n"
    assert settled.prefix == "38.\n"
    (last,) = MarkdownParser().parse(text[settled.end :], settled.end, settled.prefix).blocks
    assert last.place.marker is not None
    assert last.place.marker.number == 39


def test_a_code_block_is_open_until_its_fence_closes() -> None:
    texts = ("```\na", "```\na\n", "```\na\n```", "    a", "    a\n\nb", "> ```\n> a\n\nb")
    is_open = [
        next(block for block in parse(text) if isinstance(block, CodeBlock)).is_open
        for text in texts
    ]
    assert is_open == [True, True, False, True, False, False]


@pytest.mark.parametrize("is_open", [True, False])
def test_colours_of_code_cover_each_line(is_open: bool) -> None:
    lines = ("def f(x):", "    '''a", "    b'''", "", "\treturn 1  # 😀", "  ")
    inks = line_inks(lines, "python", is_open=is_open)
    assert [sum(stretch.length for stretch in line) for line in inks] == [len(x) for x in lines]
    assert Ink.KEYWORD in {stretch.ink for stretch in inks[0]}


def test_strings_across_lines_are_coloured_once_the_code_is_complete() -> None:
    lines = ("x = '''", "for", "'''")
    assert line_inks(lines, "python", is_open=False)[1][0].ink is Ink.STRING
    assert line_inks(lines, "python", is_open=True)[1][0].ink is Ink.KEYWORD


def test_code_of_a_slow_lexer_is_coloured_line_by_line() -> None:
    lines = ["x = '''", "for", "'''"]
    lines += ["y" * 100] * ((MAX_WHOLE_CHARS - sum(map(len, lines))) // 100)
    lines[-1] += "y" * (MAX_WHOLE_CHARS - sum(map(len, lines)))
    assert line_inks(tuple(lines), "python", is_open=False)[1][0].ink is Ink.STRING
    assert line_inks((*lines, "y"), "python", is_open=False)[1][0].ink is Ink.KEYWORD
    line = "for " * (MAX_LINE_CHARS // 4)
    assert line_inks((line,), "python", is_open=True)[0][0].ink is Ink.KEYWORD
    assert line_inks((line + "x",), "python", is_open=True) == (((MAX_LINE_CHARS + 1, Ink.PLAIN),),)


def test_code_of_many_lines_is_coloured_line_by_line() -> None:
    lines = ("x = '''", "for", "'''", *["y"] * (MAX_WHOLE_LINES - 3))
    assert line_inks(lines, "python", is_open=False)[1][0].ink is Ink.STRING
    assert line_inks((*lines, "y"), "python", is_open=False)[1][0].ink is Ink.KEYWORD


class OddLexer:
    """Takes a while for each character, and notes what it is given."""

    def __init__(self, token_s: float) -> None:
        self.texts: list[str] = []
        self._token_s = token_s

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        self.texts.append(text)
        for at, char in enumerate(text):
            end = time.thread_time() + self._token_s
            while time.thread_time() < end:
                pass
            yield at, "Token.Keyword", char


@pytest.fixture
def odd_lexer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OddLexer:
    lexer = OddLexer(request.param)
    highlighter = Highlighter(lexer)
    monkeypatch.setattr(highlight, "_highlighter", lambda _: highlighter)
    highlight._line_inks.cache_clear()
    highlight._block_inks.cache_clear()
    return lexer


@pytest.mark.parametrize("odd_lexer", [0.002], indirect=True)
def test_a_language_is_shown_plain_once_its_lexer_was_slow_twice(odd_lexer: OddLexer) -> None:
    lines = tuple(f"{i}" * 400 for i in range(10))
    begin = time.thread_time()
    assert line_inks(lines, "odd", is_open=True) == (((400, Ink.PLAIN),),) * 10
    assert time.thread_time() - begin < 3 * MOST_S
    assert len(odd_lexer.texts) == MOST_SLOW_CALLS
    assert line_inks(("more",), "odd", is_open=False) == (((4, Ink.PLAIN),),)
    assert len(odd_lexer.texts) == MOST_SLOW_CALLS


@pytest.mark.parametrize("odd_lexer", [0.0], indirect=True)
def test_lexers_never_get_runs_of_empty_lines(odd_lexer: OddLexer) -> None:
    lines = ("", "", "a", *[" \t"] * 3_000, "b", "")
    inks = line_inks(lines, "odd", is_open=False)
    assert odd_lexer.texts == ["a\n \t\nb\n"]
    assert [sum(stretch.length for stretch in line) for line in inks] == [len(x) for x in lines]
    assert inks[2][0].ink is inks[-2][0].ink is Ink.KEYWORD
    assert line_inks(("", " "), "odd", is_open=False) == ((), ((1, Ink.PLAIN),))
    assert len(odd_lexer.texts) == 1


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("autohotkey", ("",) * 900),
        ("autohotkey", ("a", "") * 450),
        ("autoit", ("",) * 900),
        ("nemerle", ("a",) * 900),
        ("androidbp", ("_" * 2_900,)),
        ("lilypond", ("a" * 400,) * 7),
        ("systemd", ("a" + " " * 399,) * 7),
        ("mcschema", ("<!--" * 100,)),
        ("tnt", ("(" * 400,)),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_lexers_that_take_long_are_stopped(
    language: str, lines: tuple[str, ...], is_open: bool
) -> None:
    line_inks(("a",), language, is_open=is_open)  # imports it
    begin = time.thread_time()
    inks = line_inks(lines, language, is_open=is_open)
    assert time.thread_time() - begin < 0.5  # up to 15.9 s without bounds, or for ever
    assert [sum(stretch.length for stretch in line) for line in inks] == [len(x) for x in lines]


def test_an_unknown_language_is_shown_plain() -> None:
    assert line_inks(("for x",), "no-such-language", is_open=False) == (((5, Ink.PLAIN),),)


@pytest.mark.parametrize(("markup", "deepest"), [("> ", 20), ("- ", 10), ("> - ", 6)])
def test_deeper_nesting_than_any_text_has_is_flattened(markup: str, deepest: int) -> None:
    # Each level narrows the column, and a long text in a narrow one takes long to lay out.
    places = [block.place for block in parse(markup * deepest + "in\n\n" + markup * 200 + "word")]
    assert max(max(place.quote_depth, place.list_depth) for place in places) <= deepest + 1
    assert max(place.quote_depth + place.list_depth for place in places) >= deepest


@pytest.mark.parametrize("markup", ["> ", "- ", "1. ", "> - "])
def test_text_is_shown_however_deep_it_is_nested(markup: str) -> None:
    text = markup * 200 + "word\n\nend"
    blocks = parse(text)
    check_runs(text, blocks)
    check_order(blocks)
    assert "word" in "".join(run.text for run in all_runs(blocks[:-1]))
    assert blocks[-1].place.list_depth == 0


def test_an_empty_item_has_its_own_marker() -> None:
    first, second = parse("-\n- a")
    assert isinstance(first, Paragraph)
    assert first.runs == ()
    assert first.place.marker is not None
    assert second.place.marker is not None
