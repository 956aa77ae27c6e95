"""Citations are links; text, source positions and marks of tokens stay as they are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument

from app.chat.messages.answer_document import AnswerDocument
from app.markdown.model import Run, runs_of
from app.markdown.parser import MarkdownParser
from app.markdown.selection import Selection
from medusa_core.chats.answer_text import AnswerText
from tests.support.window.markdown_samples import wild_documents
from tests.support.window.rendered import STYLE, positions_of_ranges
from tests.support.window.streamed_answers import Answer, answers


def runs(text: str, *numbers: int) -> list[Run]:
    """Return all runs of a text that may cite passages of these numbers."""
    blocks = MarkdownParser(numbers).parse(text).blocks
    return [run for block in blocks for line in runs_of(block) for run in line]


def cited(text: str, *numbers: int) -> list[tuple[str, str]]:
    """Return text and target of the citations in a text."""
    return [(run.text, run.href) for run in runs(text, *(numbers or (1, 2, 12))) if run.href]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It waits [1].", [("[1]", "passage:1")]),
        ("It waits.[12]", [("[12]", "passage:12")]),
        ("[1][2]", [("[1]", "passage:1"), ("[2]", "passage:2")]),
        ("So [1, 2].", [("1", "passage:1"), ("2", "passage:2")]),
        ("So [1, 9].", [("1", "passage:1"), ("9", "no-passage:9")]),
        ("**It [2]** and *[1]*", [("[2]", "passage:2"), ("[1]", "passage:1")]),
        ("- one [1]\n- two [3]", [("[1]", "passage:1"), ("[3]", "no-passage:3")]),
        ("| a [1] | b |\n|---|---|\n| c | [2] |", [("[1]", "passage:1"), ("[2]", "passage:2")]),
        ("[1]: tea.md", [("[1]", "passage:1")]),
        ("[1](https://a.b)", [("1", "https://a.b")]),
        ("[see [1]](https://a.b)", [("see [1]", "https://a.b")]),
        *(
            (text, [])
            for text in ("a[1]", "f()[1]", "`[1]`", "```\n[1]\n```", "[^1]", "[ ]", "[x]")
        ),
        ("It holds water[1].", [("[1]", "passage:1")]),
        ("in 2019[1, 2]", [("1", "passage:1"), ("2", "passage:2")]),
        ("(see above)[1]", [("[1]", "passage:1")]),
        ("(50 %)[9]", [("[9]", "no-passage:9")]),
        ("水[1]。", [("[1]", "passage:1")]),
        *(
            (text, [])
            for text in ("`water[1]`", "water[9]", "x1[1]", "my_list[1]", "rowCount[1]", "a.b[1]")
        ),
        ("    water[1]", []),
        *(
            (text, [])
            for text in ("[0]", "[01]", "[12345]", "\\[1\\]", "$[1]$", "[1, 0]", "![1](a)")
        ),
    ],
)
def test_citations_are_links(text: str, expected: list[tuple[str, str]]) -> None:
    assert cited(text) == expected


def test_without_passages_nothing_is_cited() -> None:
    assert [run.href for run in runs("It waits [1].")] == [""]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["[1]", "[9]", "[1, 2]", " "]), max_size=6), wild_documents())
def test_citations_keep_text_and_positions(citations: list[str], text: str) -> None:
    half = len(text) // 2
    whole = text[:half] + "".join(citations) + text[half:]

    def chars(found: list[Run]) -> list[tuple[str, int]]:
        """Return each character with the end of its source, as tokens own it."""
        return [
            (char, run.start + index + 1 if run.is_one_to_one else run.end)
            for run in found
            for index, char in enumerate(run.text)
        ]

    assert chars(runs(whole, 1, 2)) == chars(runs(whole))


def shown(answer: Answer, *numbers: int, at_once: bool = False) -> AnswerDocument:
    """Show an answer that may cite passages, step by step or at once."""
    content = AnswerText()
    view = AnswerDocument(content, QTextDocument(), STYLE, passages=numbers)
    for step in answer.steps:
        content.append(step)
        if not at_once:
            view.refresh()
    content.finish(answer.done.text)
    view.refresh()
    while view.is_behind:
        view.show_more()
    return view


DOCUMENTS = st.lists(
    st.sampled_from(
        ["Herons wait ", "wait", "[1]", "[7]", "[1, 2] ", "\n\n", "- ", "`[1]`", "(x)", "**"]
    ),
    min_size=1,
    max_size=12,
).map("".join)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(answers(DOCUMENTS))
def test_marks_and_copied_text_are_as_without_citations(qapp: object, answer: Answer) -> None:
    citing, plain = shown(answer, 1, 2), shown(answer)
    assert citing.document.toPlainText() == plain.document.toPlainText()
    assert positions_of_ranges(citing) == positions_of_ranges(plain)
    everything = Selection(0, citing.document.characterCount() - 1)
    assert citing.selected(everything) == plain.selected(everything)
    assert shown(answer, 1, 2, at_once=True).document.toHtml() == citing.document.toHtml()
