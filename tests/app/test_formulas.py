"""Formulas as text, whose characters still know their tokens."""

from __future__ import annotations

import time

import pytest
from PySide6.QtGui import QTextDocument

from app.chat.messages.answer_document import AnswerDocument
from app.markdown import formula_reader
from app.markdown.formula_reader import text_of
from app.markdown.formulas import formula_text
from app.markdown.model import Paragraph, TextStyle
from app.markdown.parser import MarkdownParser
from app.markdown.scripts import FormulaError
from medusa_core.messages import TARGET
from tests.app.offloaded import step
from tests.app.rendered import STYLE, plain_text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"x^{n+1}+\alpha_i", "xⁿ⁺¹+αᵢ"),
        (r"\frac{a+b}{c}\cdot\sqrt{x}", "(a+b)/c·√x"),
        (r"\sum_{i=1}^n i^2 = \frac{n(n+1)}{2}", "∑ᵢ₌₁ⁿ i² = (n(n+1))/2"),
        (r"e^{i\pi}", "e^(iπ)"),
        (r"\mathbb{R} \le \infty", "ℝ ≤ ∞"),
        (r"\frac{\frac{1}{2}}{3}", "(1/2)/3"),
        (r"f'(x)", "f′(x)"),
        (r"\frac{\sin x}{x}", "(sin x)/x"),
        (r"\{a \% b\}", "{a % b}"),
        (r"\begin{aligned} a &= b \\ c &= d\end{aligned}", "a = b\nc = d"),
        (r"\sqrt[3]{x}", "³√x"),
        (r"\left[0, 1\right)", "[0, 1)"),
        (r"]a, b[", "]a, b["),
        (r"\left.\frac{d}{dx}\right|_{x=0}", "d/dx|ₓ₌₀"),
    ],
)
def test_a_formula_reads_as_text(source: str, text: str) -> None:
    assert formula_text(source) == text


@pytest.mark.parametrize(
    "source",
    [r"\unknown{x}", "{" * 500, "x" * 700, r"\input{/etc/passwd}", "x^{", "a % b", "", r"\frac"],
)
def test_what_cant_be_told_well_stays_as_it_was_written(source: str) -> None:
    assert formula_text(source) is None


@pytest.mark.parametrize(
    "source",
    [
        *(r"\sqrt[" * num + "x" for num in (1, 10, 25, 90)),
        r"\sqrt[" * 90 + "x" + "]{x}" * 10,
        r"\sqrt[\sqrt[2]{x}]{x}",
        r"\not\left(\sqrt[\item" * 25,
        r"\frac{x\sqrt[=" * 30 + "}" * 30,
        "{[" * 20 + "x" + "]}" * 20,
        r"\(\[" * 120,
        r"\begin{cases}" * 40,
        r"\frac" * 100,
        r"\hat\overline",
    ],
)
def test_a_formula_that_isnt_closed_or_is_nested_in_brackets_is_left_at_once(source: str) -> None:
    begin = time.thread_time()
    assert formula_text(source) is None
    assert time.thread_time() - begin < 0.5  # pylatexenc alone takes hours for the third


@pytest.mark.parametrize("bound", ["MOST_TOKENS", "MOST_CHARS"])
def test_what_takes_more_work_than_its_length_allows_is_left(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "x^{2} + " * 20 + "y"
    assert text_of(source)
    monkeypatch.setattr(formula_reader, bound, len(source) // 2)
    with pytest.raises(FormulaError):
        text_of(source)


def test_the_text_of_parts_in_parts_is_bounded() -> None:
    # Displayed formulas are written with spaces before each line, more in each around them.
    assert text_of(r"\[x" * 10 + r"\]" * 10)
    with pytest.raises(FormulaError):
        text_of(r"\[x" * 100 + r"\]" * 100)


def test_nothing_is_logged_of_a_formula(caplog: pytest.LogCaptureFixture) -> None:
    for source in (r"\overline", r"\hat\overline", r"\textfrac{a}", r"\bra", r"\sqrt[", "x}"):
        formula_text(source)
    assert not caplog.records


def shown(text: str) -> list[tuple[str, bool]]:
    """Runs of a text, and which of them are formulas."""
    (block,) = MarkdownParser().parse(text).blocks
    assert isinstance(block, Paragraph)
    return [(run.text, bool(run.style & TextStyle.MATH)) for run in block.runs]


@pytest.mark.parametrize("text", ["$5 and $6", "US$5 (A$7)", "$PATH:$HOME", "a$ b$", r"\$x\$ y"])
def test_a_price_is_no_formula(text: str) -> None:
    assert not any(is_formula for _, is_formula in shown(text))


@pytest.mark.parametrize("text", [r"$x^2$", r"$$x^2$$", r"\(x^2\)", r"\[x^2\]", "$$\nx^2\n$$"])
def test_every_way_of_writing_a_formula_is_known(text: str) -> None:
    assert shown(text) == [("x²", True)]


def test_of_formulas_that_end_at_one_place_only_the_innermost_is_read() -> None:
    assert shown(r"\(a \(x^2\)") == [("(a ", False), ("x²", True)]
    assert shown(r"\[a \\[3pt] b\]") == [("a\u2028b", True)]
    formula_text.cache_clear()
    shown(r"\(x" * 150 + r"\)")
    assert formula_text.cache_info().misses == 1


def test_no_list_begins_inside_of_a_formula() -> None:
    (block,) = MarkdownParser().parse("$$\na\n+ b\n- c\n$$").blocks
    assert isinstance(block, Paragraph)
    assert [run.text for run in block.runs] == ["a + b - c"]


def test_a_formula_belongs_to_its_last_token_and_is_copied_as_its_source(qapp: object) -> None:
    view = AnswerDocument(QTextDocument(), STYLE)
    pieces = (b"So $x", b"^2$", b" is.")
    view.append(step(0, pieces, (TARGET,) * 3, 12))
    view.finish()
    assert plain_text(view) == "So x² is."
    assert [view.token_at(at) for at in (2, 3, 4, 5)] == [0, 1, 1, 2]
    assert view.selected_text(0, 9) == "So $x^2$ is."
    assert view.selected_text(1, 2) == "o"
