"""LaTeX formulas as Unicode text, by pylatexenc; what can't be told well is left to its source.

Nothing is executed or read: pylatexenc only parses, and commands that it doesn't know leave the
formula as it was written. Long, deep and many formulas are left, too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# Longest formula, and deepest braces.
FORMULA_CHARS = 600
_MOST_DEPTH = 12
_SUPERS = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδθιφχ−",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᶿᶥᶲᵡ⁻",
        strict=True,
    )
)
_SUBS = dict(
    zip(
        "0123456789+-=()aehijklmnoprstuvxβγρφχ−",
        "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ₋",
        strict=True,
    )
)
_SHIFTS = {"^": _SUPERS, "_": _SUBS}
_COMMENT = re.compile(r"(?<!\\)%")
_EMPTY_BRACKET = re.compile(r"\\(left|right)\s*\.")
_RELATION = re.compile(r"\s*([=≤≥≠≈<>→⇒∈≡∼↦⟹⟺⇔∝])\s*")
_FUNCTIONS = ("sin", "cos", "tan", "log", "ln", "exp", "min", "max", "arg", "det", "dim", "ker")
_AS_THEIR_TEXT = ("left", "right", "displaystyle", "operatorname", "boxed", "big", "Big", "limits")
# Braces that are shown, as long as those that group are about.
_LEFT, _RIGHT = "\ue000", "\ue001"
_KEPT_BRACES = str.maketrans({_LEFT: "{", _RIGHT: "}"})
# What pylatexenc says of commands whose arguments are missing.
_ODD = (AttributeError, TypeError, RecursionError)
_PRIMES = {"'": "′"}


class _Untellable(Exception):  # noqa: N818 - it never leaves this module
    """A formula holds what has no good text."""


@lru_cache(maxsize=512)
def formula_text(source: str) -> str | None:
    """A formula as text; None where its source is the better one.

    Args:
        source: What stands between the signs that mark a formula.
    """
    if len(source) > FORMULA_CHARS or _COMMENT.search(source) or not _is_even(source):
        return None
    from pylatexenc.latexwalker import LatexWalkerError

    try:
        told = _converter().latex_to_text(_EMPTY_BRACKET.sub("", source.replace("\n", " ")))
        lines = [
            " ".join(_RELATION.sub(r" \1 ", _shifted(line)).split())
            for line in told.strip().split("\n")
        ]
    except (_Untellable, LatexWalkerError, LookupError, ValueError, *_ODD):
        return None
    text = "\n".join(line for line in lines if line).translate(_KEPT_BRACES)
    return text if text and "\\" not in text else None


def _is_even(source: str) -> bool:
    """Whether every brace is closed, and none is too deep."""
    depth = 0
    for char in re.sub(r"\\[{}\\]", "", source):
        depth += (char == "{") - (char == "}")
        if not 0 <= depth <= _MOST_DEPTH:
            return False
    return depth == 0


@lru_cache(maxsize=1)
def _converter() -> Any:
    # Importing it takes 30 ms, and most conversations hold no formulas.
    from pylatexenc.latex2text import (
        EnvironmentTextSpec,
        LatexNodes2Text,
        MacroTextSpec,
        get_default_latex_context_db,
    )

    def refuse(*_arguments: object, **_named: object) -> str:
        raise _Untellable

    def fraction(node: Any, l2tobj: Any) -> str:
        above, below = (l2tobj.nodelist_to_text([n]) for n in node.nodeargd.argnlist[:2])
        return f"{_grouped(above)}/{_grouped(below)}"

    def root(node: Any, l2tobj: Any) -> str:
        index, inner = node.nodeargd.argnlist[:2]
        sign = "" if index is None else _shift(l2tobj.nodelist_to_text([index]).strip("[]"), "^")
        return f"{sign}√{_grouped(l2tobj.nodelist_to_text([inner]))}"

    def function(node: Any, **_named: object) -> str:
        following = node.macro_post_space
        return f"{node.macroname}{' ' if following else ''}"

    def lines(node: Any, l2tobj: Any) -> str:
        return str(l2tobj.nodelist_to_text(node.nodelist))

    def cases(node: Any, l2tobj: Any) -> str:
        told = lines(node, l2tobj).strip().split("\n")
        return f"{_LEFT} " + "; ".join(" ".join(one.split()) for one in told)

    context = get_default_latex_context_db()
    context.add_context_category(
        "formulas",
        macros=[
            MacroTextSpec("{", simplify_repl=_LEFT),
            MacroTextSpec("}", simplify_repl=_RIGHT),
            *(MacroTextSpec(name, simplify_repl=fraction) for name in ("frac", "dfrac", "tfrac")),
            MacroTextSpec("sqrt", simplify_repl=root),
            *(MacroTextSpec(name, simplify_repl="") for name in _AS_THEIR_TEXT),
            *(MacroTextSpec(name, simplify_repl=function) for name in _FUNCTIONS),
            *(
                MacroTextSpec(name, simplify_repl=refuse)
                for name in ("input", "include", "def", "newcommand", "hline", "begin", "end")
            ),
        ],
        environments=[
            *(
                EnvironmentTextSpec(name, simplify_repl=lines)
                for name in ("aligned", "align", "align*", "split", "gather", "gather*", "gathered")
            ),
            EnvironmentTextSpec("cases", simplify_repl=cases),
            *(
                EnvironmentTextSpec(name, simplify_repl=refuse)
                for name in ("array", "tabular", "cd")
            ),
        ],
        prepend=True,
    )
    context.set_unknown_macro_spec(MacroTextSpec("", simplify_repl=refuse))
    context.set_unknown_environment_spec(EnvironmentTextSpec("", simplify_repl=refuse))
    return LatexNodes2Text(latex_context=context, keep_braced_groups=True, math_mode="text")


def _grouped(text: str) -> str:
    """A part of a fraction or under a root: in parentheses unless it is one word."""
    inner = _shifted(_bare(text)).strip()
    return inner if inner.replace(".", "").isalnum() or len(inner) == 1 else f"({inner})"


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if text.startswith("{") and text.endswith("}") else text


def _shifted(text: str) -> str:
    """A text whose `^…` and `_…` are raised and lowered, and whose other braces are gone."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in _SHIFTS and at + 1 < len(text):
            end = _end_of_argument(text, at + 1)
            parts.append(_shift(_shifted(_bare(text[at + 1 : end])), char))
            at = end
            continue
        if char not in "{}":
            parts.append(_PRIMES.get(char, char))
        at += 1
    return "".join(parts)


def _end_of_argument(text: str, at: int) -> int:
    if text[at] != "{":
        return at + 1
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if not depth:
            return end + 1
    raise _Untellable


def _shift(text: str, sign: str) -> str:
    """A text raised or lowered, where all of its characters can be."""
    text = text.strip().replace("∗", "*")
    if text in ("′", "*", "⊤", "†", "∘") and sign == "^":
        return {"∘": "°", "⊤": "ᵀ"}.get(text, text)
    signs = _SHIFTS[sign]
    close = text.replace(" ", "")
    if all(char in signs for char in close):
        return "".join(signs[char] for char in close)
    return f"{sign}{text}" if len(text) == 1 else f"{sign}({text})"
