"""Converts LaTeX formulas to Unicode text, if the text is unambiguous."""

from __future__ import annotations

import re
from functools import lru_cache

from app.markdown.formula_layout import FormulaError
from app.markdown.latex_parser import text_of

# Longest formula that is read.
FORMULA_CHARS = 2_000
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*%")


@lru_cache(maxsize=512)
def formula_text(source: str) -> str | None:
    """Convert a formula to text; None if its source is clearer.

    Args:
        source: Text between the delimiters.
    """
    if len(source) > FORMULA_CHARS or _COMMENT.search(source):
        return None
    try:
        text = text_of(source)
    except FormulaError:
        return None
    return text or None
