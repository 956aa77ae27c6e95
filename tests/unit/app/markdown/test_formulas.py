"""Formulas as text, whose characters still know their tokens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument

from app.markdown.formula_rule import FORMULA_CHARS, formula_text
from app.markdown.model import Paragraph, TextStyle
from app.markdown.parser import MarkdownParser
from app.markdown.selection import Selection
from medusa_core.messages import TARGET
from tests.support.window.rendered import STYLE, plain_text
from tests.support.window.streamed_answers import StreamedDocument, step

FRAGMENTS = (
    *"abx12+-=^_{}()[]|&' ,;!~*/<", r"\frac", r"\sqrt", r"\left(", r"\right)", r"\\", r"\alpha ",
    r"\begin{cases}", r"\end{cases}", r"\begin{aligned}", r"\end{aligned}", r"\text{", r"\sum",
    r"\hat", r"\sin", r"\not", r"\over", r"\mathbf", r"\binom", r"\left.", r"\right|", "$", "é",
    r"\overset", r"\pmod", r"\tag", r"\,", r"\quad", r"\{", r"\boxed", r"\operatorname",
)  # fmt: skip


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
        (r"\frac{a+b}{c}d", "((a+b)/c)d"),
        (r"1/\frac{a}{b}", "1/(a/b)"),
        (r"\frac12 x", "(1/2) x"),
        (r"e^{-\frac{x^2}{2\sigma^2}}", "e^(-x²/(2σ²))"),
        (r"\frac{d}{dx}x^2", "(d/dx)x²"),
        (r"\sqrt{2}x", "√(2)x"),
        (r"a\sqrt[3]{x}", "a(³√x)"),
        (r"\sin\frac{x}{2}", "sin(x/2)"),
        (r"n\log n", "n log n"),
        (r"\prod_i\frac{a_i}{b}", "∏ᵢ(aᵢ/b)"),
        (r"x_Q^2", "x_(Q)²"),
        (r"x^*y", "x^(*)y"),
        (r"\binom{n}{k}p^k", "C(n, k)pᵏ"),
        (r"P(\overline{A}) = 1 - P(A)", "P(A\u0305) = 1 - P(A)"),
        (r"\overline{A}\overline{B}", "A\u0305\u2009B\u0305"),
        (r"\vec{v}\cdot\hat{n}", "v\u20d7·n\u0302"),
        (r"\begin{cases} 1 & x>0 \\ 0, & x \le 0\end{cases}", "{ 1, x > 0; 0, x ≤ 0"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}^T", "(a, b; c, d)ᵀ"),
        (r"\left[\begin{matrix} 1 \\ 2 \end{matrix}\right]", "[1; 2]"),
        (r"\left\{\begin{array}{l} a \\ b \end{array}\right.", "{ a; b"),
        (r"\dfrac{1}{2} + \tfrac12", "1/2 + 1/2"),
        (r"\neg p, \|x\|_2, a\not= b, x\not\in A", "¬ p, ‖x‖₂, a ≠ b, x ∉ A"),
        (r"\operatorname{rank} A \equiv 1 \pmod{n}", "rank A ≡ 1 (mod n)"),
        (r"A \xrightarrow{f} B \stackrel{\text{def}}{=} C", "A —f→ B ≝ C"),
        (r"x = 1 \quad y = 2", "x = 1\u2003y = 2"),
        (r"\text{if $x > 0$ then }\mathbf{v}\in\mathbb{R}^n", "if x > 0 then 𝐯 ∈ ℝⁿ"),
        (r"\lim_{x\to 0}(1+x)^{1/x}", "lim_(x → 0) (1+x)^(1/x)"),
        (r"\boxed{x = 5}.", "x = 5."),
        (r"\frac{a}{b}\% + \frac{n!}{(n-k)!\,k!}", "(a/b)% + n!/((n-k)! k!)"),
        (r"\frac{dy}{dx} = \frac{\partial^2 u}{\partial x^2}", "dy/dx = ∂²u/∂x²"),
        (r"\left.\frac{a}{b}+c\right|_0^1", "(a/b+c)|₀¹"),
    ],
)
def test_a_formula_is_shown_as_text(source: str, text: str) -> None:
    assert formula_text(source) == text


@pytest.mark.parametrize(
    "source",
    [
        r"\unknown{x}",
        "{" * 500,
        "x" * (FORMULA_CHARS + 1),
        r"\input{/etc/passwd}",
        "x^{",
        "a % b",
        "",
        r"\frac",
        r"\frac{}{2}",
        "x^2^3",
        "{a+b}^2",
        r"\overline{AB}",
        r"\bar{AB}",
        r"\vec{AB}",
        r"\widehat{ABC}",
        r"\underline{ab}",
        r"\underbrace{a+b}_{n}",
        r"\hat{x_i}",
        r"\hat{ab}",
        r"\begin{cases} a \end{cases} + 1",
        r"\begin{matrix} a & b \end{matrix}",
        r"\begin{pmatrix} a, b & c \end{pmatrix}",
        r"\begin{array}{c|c} a & b \end{array}",
        r"\cancel{x}",
        r"\overset{!}{=}",
        r"\text{\textbf{x}}",
        "a & b",
        r"\left( x",
        r"\end{x}",
    ],
)
def test_an_unreadable_formula_stays_as_written(source: str) -> None:
    assert formula_text(source) is None


@pytest.mark.parametrize(
    "source",
    [
        *(r"\sqrt[" * num + "x" for num in (1, 10, 25, 90)),
        r"\sqrt[" * 90 + "x" + "]{x}" * 10,
        r"\sqrt[\sqrt[2]{x}]{x}",
        r"\not\left(\sqrt[\item" * 25,
        r"\frac{x\sqrt[=" * 30 + "}" * 30,
        "{[" * 30 + "x" + "]}" * 30,
        r"\(\[" * 120,
        r"\begin{cases}" * 40,
        r"\frac" * 100,
        r"\hat\overline",
    ],
)
def test_an_unclosed_or_deeply_nested_formula_is_rejected_quickly(source: str) -> None:
    begin = time.thread_time()
    assert formula_text(source) is None
    assert time.thread_time() - begin < 0.5


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_any_input_is_either_rendered_or_kept(source: str) -> None:
    text = formula_text(source)
    assert text is None or ("\\" not in text and "{}" not in text)


def shown(text: str) -> list[tuple[str, bool]]:
    """Runs of a text, and which of them are formulas."""
    (block,) = MarkdownParser().parse(text).blocks
    assert isinstance(block, Paragraph)
    return [(run.text, bool(run.style & TextStyle.MATH)) for run in block.runs]


@pytest.mark.parametrize("text", ["$5 and $6", "US$5 (A$7)", "$PATH:$HOME", "a$ b$", r"\$x\$ y"])
def test_a_price_is_no_formula(text: str) -> None:
    assert not any(is_formula for _, is_formula in shown(text))


@pytest.mark.parametrize("text", [r"$x^2$", r"$$x^2$$", r"\(x^2\)", r"\[x^2\]", "$$\nx^2\n$$"])
def test_every_formula_delimiter_is_known(text: str) -> None:
    assert shown(text) == [("x²", True)]


@pytest.mark.parametrize(
    "text",
    [
        r"\[ \foo{1}{2} \]",
        r"\( \foo{a}_b*c*_d_ \)",
        r"$$\foo12 \\ *x*$$",
        r"$\foo p_a*q*r_a$",
        r"\[ \{1,2\} \bar{AB} \]",
        r"\begin{align} \foo{a} &= b \\ c \end{align}",
        r"\[ " + "x + " * FORMULA_CHARS + r"\| \]",
    ],
)
def test_an_unsupported_formula_stays_exactly_as_written(text: str) -> None:
    assert shown(text) == [(text, False)]
    assert "".join(t for t, _ in shown(f"so {text} and")) == f"so {text} and"


def test_lines_of_an_unsupported_formula_stay_lines() -> None:
    assert "".join(t for t, _ in shown("$$\n\\foo{a}\n\\\\ - b\n$$")) == (
        "$$\u2028\\foo{a}\u2028\\\\ - b\u2028$$"
    )


def test_an_environment_without_signs_is_a_formula() -> None:
    text = "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}"
    assert shown(text) == [("a = b\u2028c = d", True)]


def test_a_formula_as_long_as_its_source_belongs_to_its_last_token(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(step(0, (b"$x=1", b"$"), (TARGET,) * 2, 5))
    view.finish()
    assert plain_text(view) == "x = 1"
    assert [view.token_at(at) for at in range(5)] == [1] * 5


def test_only_the_innermost_of_unclosed_nested_formulas_is_parsed() -> None:
    assert shown(r"\(a \(x^2\)") == [("(a ", False), ("x²", True)]
    assert shown(r"\[a \\[3pt] b\]") == [("a\u2028b", True)]
    formula_text.cache_clear()
    shown(r"\(x" * 150 + r"\)")
    assert formula_text.cache_info().misses == 1


def test_a_formula_is_recognised_between_letters_of_scripts_without_spaces() -> None:
    assert shown("公式$x^2$是") == [("公式", False), ("x²", True), ("是", False)]
    assert shown("$5件と$6件") == [("$5件と$6件", False)]


def test_no_list_begins_inside_of_a_formula() -> None:
    (block,) = MarkdownParser().parse("$$\na\n+ b\n- c\n$$").blocks
    assert isinstance(block, Paragraph)
    assert [run.text for run in block.runs] == ["a + b - c"]


def test_a_formula_belongs_to_its_last_token_and_is_copied_as_source(qapp: object) -> None:
    view = StreamedDocument(QTextDocument(), STYLE)
    pieces = (b"So $x", b"^2$", b" is.")
    view.append(step(0, pieces, (TARGET,) * 3, 12))
    view.finish()
    assert plain_text(view) == "So x² is."
    assert [view.token_at(at) for at in (2, 3, 4, 5)] == [0, 1, 1, 2]
    assert view.selected(Selection(0, 9)).text == "So $x^2$ is."
    assert view.selected(Selection(1, 2)).text == "o"
