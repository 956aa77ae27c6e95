"""Formulas read by pylatexenc, with our words for its commands and a bound on its work.

Importing it takes 30 ms, so this module is imported with the first formula.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pylatexenc import latexwalker
from pylatexenc.latex2text import (
    EnvironmentTextSpec,
    LatexNodes2Text,
    MacroTextSpec,
    get_default_latex_context_db,
)

from app.markdown.scripts import FormulaError, grouped, shift

# Tokens read, counting those that are looked at twice, and characters written, counting those of
# inner parts again with every part around them.
MOST_TOKENS = 2_000
MOST_CHARS = 12_000
# Braces that are shown, as long as those that group are about.
_LEFT, _RIGHT = "\ue000", "\ue001"
_SHOWN_BRACES = str.maketrans({_LEFT: "{", _RIGHT: "}"})
_FUNCTIONS = ("sin", "cos", "tan", "log", "ln", "exp", "min", "max", "arg", "det", "dim", "ker")
_AS_THEIR_TEXT = ("left", "right", "displaystyle", "operatorname", "boxed", "big", "Big", "limits")
_REFUSED = ("input", "include", "def", "newcommand", "hline", "begin", "end")
_REFUSED_ENVIRONMENTS = ("array", "tabular", "cd")
_LINES = ("aligned", "align", "align*", "split", "gather", "gather*", "gathered")
# What pylatexenc raises where arguments are missing, and at other odd formulas.
_ODD = (AttributeError, TypeError, RecursionError, LookupError, ValueError)


def text_of(source: str) -> str:
    """A formula as text that still has `^`, `_` and the braces that group.

    Raises:
        FormulaError: It is wrong, has no good text, or takes too much work.
    """
    try:
        nodes, _, _ = _Walker(source).get_latex_nodes()
        return str(_Converter().nodelist_to_text(nodes))
    except (latexwalker.LatexWalkerError, *_ODD) as error:
        raise FormulaError from error


def shown_braces(text: str) -> str:
    """A text of which only the braces are left that are to be seen."""
    return text.translate(_SHOWN_BRACES)


class _Walker(latexwalker.LatexWalker):  # type: ignore[misc]  # pylatexenc has no types
    r"""Parses a formula once, up to its first error.

    pylatexenc's tolerant parsing reads again what precedes an error, at every level of nesting:
    twice the time for each `\sqrt[` that isn't closed.
    """

    def __init__(self, source: str) -> None:
        super().__init__(source, latex_context=_walker_context(), tolerant_parsing=False)
        self._num_tokens = 0

    def get_token(self, *arguments: Any, **named: Any) -> Any:
        self._num_tokens += 1
        if self._num_tokens > MOST_TOKENS:
            raise FormulaError
        return super().get_token(*arguments, **named)


class _Converter(LatexNodes2Text):  # type: ignore[misc]  # pylatexenc has no types
    """Writes a parsed formula as text."""

    def __init__(self) -> None:
        super().__init__(latex_context=_context(), keep_braced_groups=True, math_mode="text")
        self._num_chars = 0

    def nodelist_to_text(self, nodelist: Any) -> str:
        text = str(super().nodelist_to_text(nodelist))
        self._num_chars += len(text)
        if self._num_chars > MOST_CHARS:
            raise FormulaError
        return text

    def apply_simplify_repl(self, node: Any, simplify_repl: Any, what: str) -> Any:
        # pylatexenc would write the pattern itself, and a warning into the log.
        if isinstance(simplify_repl, str) and node.isNodeType(latexwalker.LatexMacroNode):
            num_places = simplify_repl.count("%s")
            if num_places and num_places != len(node.nodeargd.argnlist):
                raise FormulaError
        return super().apply_simplify_repl(node, simplify_repl, what)


@lru_cache(maxsize=1)
def _walker_context() -> Any:
    """What arguments commands have."""
    return latexwalker.get_default_latex_context_db()


@lru_cache(maxsize=1)
def _context() -> Any:
    """What is written for commands."""
    context = get_default_latex_context_db()
    context.add_context_category(
        "formulas", macros=_macros(), environments=_environments(), prepend=True
    )
    context.set_unknown_macro_spec(MacroTextSpec("", simplify_repl=_refuse))
    context.set_unknown_environment_spec(EnvironmentTextSpec("", simplify_repl=_refuse))
    return context


def _macros() -> list[Any]:
    return [
        MacroTextSpec("{", simplify_repl=_LEFT),
        MacroTextSpec("}", simplify_repl=_RIGHT),
        *(MacroTextSpec(name, simplify_repl=_fraction) for name in ("frac", "dfrac", "tfrac")),
        MacroTextSpec("sqrt", simplify_repl=_root),
        *(MacroTextSpec(name, simplify_repl="") for name in _AS_THEIR_TEXT),
        *(MacroTextSpec(name, simplify_repl=_function) for name in _FUNCTIONS),
        *(MacroTextSpec(name, simplify_repl=_refuse) for name in _REFUSED),
    ]


def _environments() -> list[Any]:
    return [
        *(EnvironmentTextSpec(name, simplify_repl=_lines) for name in _LINES),
        EnvironmentTextSpec("cases", simplify_repl=_cases),
        *(EnvironmentTextSpec(name, simplify_repl=_refuse) for name in _REFUSED_ENVIRONMENTS),
    ]


def _refuse(*_arguments: object, **_named: object) -> str:
    raise FormulaError


def _fraction(node: Any, l2tobj: Any) -> str:
    above, below = (l2tobj.nodelist_to_text([n]) for n in node.nodeargd.argnlist[:2])
    return f"{grouped(above)}/{grouped(below)}"


def _root(node: Any, l2tobj: Any) -> str:
    index, inner = node.nodeargd.argnlist[:2]
    sign = "" if index is None else shift(l2tobj.nodelist_to_text([index]).strip("[]"), "^")
    if sign.startswith("^"):
        raise FormulaError  # this index can't be raised: it would seem to be an exponent
    return f"{sign}√{grouped(l2tobj.nodelist_to_text([inner]))}"


def _function(node: Any, **_named: object) -> str:
    following = node.macro_post_space
    return f"{node.macroname}{' ' if following else ''}"


def _lines(node: Any, l2tobj: Any) -> str:
    return str(l2tobj.nodelist_to_text(node.nodelist))


def _cases(node: Any, l2tobj: Any) -> str:
    lines = _lines(node, l2tobj).strip().split("\n")
    return f"{_LEFT} " + "; ".join(" ".join(one.split()) for one in lines)
