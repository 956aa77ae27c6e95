"""LaTeX formulas as Unicode text, by pylatexenc; what can't be told well is left to its source.

Nothing is executed or read: pylatexenc only parses, and commands that it doesn't know leave the
formula as it was written. Long, deep and many formulas are left, too.
"""

from __future__ import annotations

import re
from functools import lru_cache

from app.markdown.scripts import FormulaError, shifted

# Longest formula, and deepest braces and brackets.
FORMULA_CHARS = 600
_MOST_DEPTH = 12
_COMMENT = re.compile(r"(?<!\\)%")
_ESCAPED = re.compile(r"\\[{}\[\]\\]")
_EMPTY_BRACKET = re.compile(r"\\(left|right)\s*\.")
_RELATION = re.compile(r" ?([=≤≥≠≈<>→⇒∈≡∼↦⟹⟺⇔∝]) ?")


@lru_cache(maxsize=512)
def formula_text(source: str) -> str | None:
    """A formula as text; None where its source is the better one.

    Args:
        source: What stands between the signs that mark a formula.
    """
    if len(source) > FORMULA_CHARS or _COMMENT.search(source) or not _is_even(source):
        return None
    from app.markdown.formula_reader import shown_braces, text_of

    try:
        read = text_of(_EMPTY_BRACKET.sub("", source.replace("\n", " ")))
        lines = [_spaced(shifted(line)) for line in read.strip().split("\n")]
    except FormulaError:
        return None
    text = shown_braces("\n".join(line for line in lines if line))
    return text if text and "\\" not in text else None


def _is_even(source: str) -> bool:
    """Whether every brace is closed, and no brace or bracket is too deep.

    Brackets need no partner: `[0, 1)` is an interval.
    """
    depth = num_brackets = 0
    for char in _ESCAPED.sub("", source):
        depth += (char == "{") - (char == "}")
        num_brackets = max(0, num_brackets + (char == "[") - (char == "]"))
        if depth < 0 or depth + num_brackets > _MOST_DEPTH:
            return False
    return depth == 0


def _spaced(line: str) -> str:
    """A line with one space on each side of a relation."""
    return " ".join(_RELATION.sub(r" \1 ", " ".join(line.split())).split())
