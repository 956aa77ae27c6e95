"""Lines end between words, however a text is cut into pieces."""

from __future__ import annotations

import textwrap
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medusa_core.cli.terminal.word_wrap import WordWrap
from tests.tools.terminal_picture import Paper

WORDS = "Once upon a time there was a small red boat that sailed far away over the green sea"


def shown(pieces: list[str], columns: int) -> str:
    wrap, paper = WordWrap(columns), Paper(columns)
    for piece in pieces:
        for one in wrap.wrapped(piece, ""):
            paper.take(one.text.replace("\n", "\r\n"))
    return paper.text()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.lists(st.integers(0, len(WORDS)), max_size=30), st.integers(8, 40))
def test_wrapped_lines_dont_depend_on_chunks(cuts: list[int], columns: int) -> None:
    places = [0, *sorted(cuts), len(WORDS)]
    pieces = [WORDS[a:b] for a, b in pairwise(places)]
    lines = shown(pieces, columns).splitlines()
    assert lines == textwrap.wrap(WORDS, columns)


def test_a_word_longer_than_a_line_is_wrapped_by_the_terminal() -> None:
    assert shown(["abcdefghijklmnop q"], 8) == "abcdefgh\nijklmnop\nq"


def test_wide_characters_and_line_breaks_are_counted() -> None:
    assert shown(["日本 語語語"], 8) == "日本\n語語語"
    assert shown(["one\ntwo three"], 9) == "one\ntwo three"
