"""A formula that is shown has the value of what was written, however it is read."""

from __future__ import annotations

import cmath
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from app.markdown.formula_rule import formula_text

VALUES = {"a": 2.3, "b": 0.7, "c": 1.9, "x": 3.1, "y": 0.4, "Q": 1.3, "α": 0.6, "π": 3.14}
LATEX = {"α": r"\alpha ", "π": r"\pi "}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ᵃᵇᶜˣʸᵅ", "0123456789+-()abcxyα", strict=True))


class Tree(NamedTuple):
    """A formula: its LaTeX, whether it stays together beside others, and its value."""

    latex: str
    level: int  # 0 sum, 1 product, 2 factor that ends by itself, 3 a letter or a number
    value: complex


def power_of(base: complex, exponent: complex) -> complex:
    if not 1e-6 < abs(base) < 1e6 or abs(exponent) > 30:
        raise OverflowError
    return base**exponent


def root_of(inner: complex, index: int) -> complex:
    return cmath.sqrt(inner) if index == 2 else power_of(inner, 1 / index)


def quotient(above: complex, below: complex) -> complex:
    if abs(below) < 1e-6:
        raise ZeroDivisionError
    return above / below


def fenced(tree: Tree, draw: st.DrawFn) -> str:
    left, right = draw(
        st.sampled_from(((r"\left(", r"\right)"), ("(", ")"), (r"\bigl(", r"\bigr)")))
    )
    return f"{left}{tree.latex}{right}"


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Tree:
    kind = draw(st.sampled_from(("leaf", "sum", "product", "fraction", "power", "root")))
    if depth == 0 or kind == "leaf":
        name = draw(st.sampled_from((*VALUES, "2", "3", "12", "0.5")))
        value = VALUES.get(name)
        return Tree(LATEX.get(name, name), 3, float(name) if value is None else value)
    left = draw(trees(depth=depth - 1))
    try:
        return combined(draw, kind, left, depth)
    except ArithmeticError:  # such as a division by nothing
        reject()


def combined(draw: st.DrawFn, kind: str, left: Tree, depth: int) -> Tree:
    if kind == "root":
        index = draw(st.sampled_from((2, 2, 3, 4)))
        shown = "" if index == 2 else f"[{index}]"
        return Tree(rf"\sqrt{shown}{{{left.latex}}}", 2, root_of(left.value, index))
    right = draw(trees(depth=depth - 1))
    if kind == "sum":
        return sum_of(draw, left, right)
    if kind == "fraction":
        name = draw(st.sampled_from(("frac", "dfrac", "tfrac", "cfrac")))
        latex = rf"\{name}{{{left.latex}}}{{{right.latex}}}"
        if draw(st.booleans()):
            latex = rf"{{{left.latex} \over {right.latex}}}"
        return Tree(latex, 2, quotient(left.value, right.value))
    if kind == "power":
        base = left.latex if left.level == 3 else fenced(left, draw)
        value = power_of(left.value, right.value)
        return Tree(f"{base}^{{{right.latex}}}", 2, value)
    return product_of(draw, left, right)


def sum_of(draw: st.DrawFn, left: Tree, right: Tree) -> Tree:
    sign = draw(st.sampled_from((" + ", "-", r" \;- ")))
    after = fenced(right, draw) if right.level == 0 else right.latex
    is_sum = sign == " + "
    value = left.value + right.value if is_sum else left.value - right.value
    return Tree(f"{left.latex}{sign}{after}", 0, value)


def product_of(draw: st.DrawFn, left: Tree, right: Tree) -> Tree:
    signs = ["", " ", r"\,", "{}", r" \cdot ", r"\times "]
    # Of a quotient with a slash that the writer put there, it is the writer who chose the brackets.
    sign = draw(st.sampled_from(signs if not right.latex[0].isdigit() else signs[-2:]))
    factors = [fenced(t, draw) if t.level == 0 else t.latex for t in (left, right)]
    return Tree(f"{factors[0]}{sign}{factors[1]}", 1, left.value * right.value)


class Reader:
    """Reads a shown formula by one of the ways in which people do.

    Args:
        text: The formula.
        joins_first: Whether a product without a sign is read before a quotient.
        root: How far a root reaches that has no brackets: 0 for one sign, 1 for its power as
            well, 2 for all that touches it.
    """

    def __init__(self, text: str, *, joins_first: bool, root: int) -> None:
        self.text, self.at = text, 0
        self.joins_first, self.root = joins_first, root

    def peek(self) -> str:
        while self.text[self.at : self.at + 1] in (" ", "\u2009"):
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def sum(self) -> complex:
        value = self.term()
        while self.peek() in ("+", "-"):
            value = value + self.term() if self.take() == "+" else value - self.term()
        return value

    def starts(self) -> bool:
        char = self.peek()
        return bool(char) and (char.isalnum() or char in "(√" or char in RAISED)

    def touches(self) -> bool:
        """Whether a factor follows without a space."""
        char = self.text[self.at : self.at + 1]
        return bool(char) and (char.isalnum() or char == "(") and char not in RAISED

    def term(self) -> complex:
        operand = self.joined if self.joins_first else self.factor
        value = operand()
        while True:
            if self.peek() in ("·", "×"):
                self.take()
                value *= operand()
            elif self.peek() == "/":
                self.take()
                value = quotient(value, operand())
            elif self.starts():
                value *= operand()
            else:
                return value

    def joined(self) -> complex:
        value = self.factor()
        while self.starts():
            value *= self.factor()
        return value

    def raised(self) -> str:
        found = ""
        while self.text[self.at : self.at + 1] in RAISED and self.at < len(self.text):
            found += RAISED[self.text[self.at]]
            self.at += 1
        return found

    def factor(self) -> complex:
        self.peek()
        start = self.at
        index = self.raised()
        if self.peek() != "√":
            assert not index, (self.text, start)
            return self.powered(self.primary())
        self.take()
        is_bracketed = self.text[self.at] == "("
        operand = self.primary()
        if self.root and not is_bracketed:
            operand = self.powered(operand)
        while self.root == 2 and not is_bracketed and self.touches():
            operand *= self.powered(self.primary())
        return self.powered(root_of(operand, int(index or 2)))

    def powered(self, base: complex) -> complex:
        if self.text[self.at : self.at + 1] == "^":
            self.at += 1
            return power_of(base, self.primary())
        if raised := self.raised():
            inner = Reader(raised, joins_first=self.joins_first, root=self.root)
            exponent = inner.sum()
            assert inner.at == len(raised)
            return power_of(base, exponent)
        return base

    def primary(self) -> complex:
        char = self.take()
        if char == "(":
            value = self.sum()
            assert self.take() == ")", self.text
            return value
        if char.isdecimal():
            while self.text[self.at : self.at + 1].isdecimal() or (
                self.text[self.at : self.at + 1] == "."
            ):
                char += self.text[self.at]
                self.at += 1
            return float(char)
        return VALUES[char]


def check(latex: str, value: complex) -> None:
    shown = formula_text(latex)
    if shown is None:
        return
    for joins_first, root in product((False, True), range(3)):
        reader = Reader(shown, joins_first=joins_first, root=root)
        read = reader.sum()
        assert not reader.peek(), (latex, shown)
        assert cmath.isclose(read, value, rel_tol=1e-6, abs_tol=1e-9), (latex, shown, read, value)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(trees())
def test_a_shown_formula_has_the_value_of_its_source(tree: Tree) -> None:
    assume(abs(tree.value) < 1e12)
    assert formula_text(tree.latex) is not None, tree.latex
    check(tree.latex, tree.value)


@pytest.mark.parametrize(
    ("latex", "value"),
    [
        (r"\frac{a+b}{c}x", (2.3 + 0.7) / 1.9 * 3.1),
        (r"1/\frac{a}{b}", 0.7 / 2.3),
        (r"\frac12 x", 1.55),
        (r"\sqrt2x", 2**0.5 * 3.1),
        (r"a\sqrt[3]{x}", 2.3 * 3.1 ** (1 / 3)),
        (r"\sqrt{x}^{2}", 3.1),
        (r"x^{\frac{a}{b}}y", 3.1 ** (2.3 / 0.7) * 0.4),
        (r"\frac{ab}{cx}", 2.3 * 0.7 / (1.9 * 3.1)),
        (r"\frac{a}{b}\frac{c}{x}", 2.3 / 0.7 * 1.9 / 3.1),
        (r"\frac{a}{b}/\frac{c}{x}", 2.3 / 0.7 / 1.9 * 3.1),
        (r"2^{3^{2}}", 512.0),
        (r"{2^3}^2", 64.0),
        (r"x^Qy", 3.1**1.3 * 0.4),
    ],
)
def test_brackets_are_added_where_one_line_needs_them(latex: str, value: complex) -> None:
    assert formula_text(latex) is not None
    check(latex, value)


def test_a_differing_value_is_detected() -> None:
    for wrong, value in (("(a+b)/cx", (2.3 + 0.7) / 1.9 * 3.1), ("√ax", 2.3**0.5 * 3.1)):
        readings = {
            round(abs(Reader(wrong, joins_first=joins_first, root=root).sum() - value), 6)
            for joins_first, root in product((False, True), range(3))
        }
        assert readings != {0.0}, wrong
