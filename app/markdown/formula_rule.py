r"""Rules for formulas in `$…$`, `$$…$$`, `\(…\)`, `\[…\]` and environments, not for prices."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from app.markdown.formula_layout import FormulaError
from app.markdown.latex_parser import text_of
from medusa_core.chats.flanking import is_unspaced

FORMULA_CHARS = 2_000  # longest formula that is read
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*%")
FORMULA = "formula"
FORMULA_SOURCE = "formula_source"
_CLOSERS = {"$$": "$$", "\\(": "\\)", "\\[": "\\]", "$": "$"}
_DISPLAYED = ("$$", "\\[")
# Environments that models write without signs around them.
_ENVIRONMENT = re.compile(
    r"\\begin\{(equation|align|alignat|gather|multline|eqnarray|flalign|aligned|gathered|split"
    r"|cases|[pbBvV]?matrix)(\*?)\}"
)
# What of a formula Markdown would take for its own; a price has none of it.
_COMMAND = re.compile(r"\\[A-Za-z{}|,;:!%_&#$\\]")


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


class _Place(NamedTuple):
    """Position of a formula in a text.

    Attributes:
        first: Start of its content.
        last: End of its content.
        end: End of its closing delimiter.
    """

    first: int
    last: int
    end: int


def formula_rule(state: StateInline, silent: bool) -> bool:
    """Inline rule: a formula becomes one token, with its converted text or its source."""
    src, at = state.src, state.pos
    if src[at] not in "$\\" or (place := _inline_place(src, at, state.posMax)) is None:
        return False
    inner = src[place.first : place.last]
    text = formula_text(inner)
    if text is None and src[at] == "$" and src[at + 1] != "$" and not _COMMAND.search(inner):
        return False
    if not silent:
        source = src[at : place.end]
        token = state.push(FORMULA_SOURCE if text is None else FORMULA, "", 0)
        token.content, token.markup = source if text is None else text, source
    state.pos = place.end
    return True


def _inline_place(src: str, at: int, limit: int) -> _Place | None:
    """Return the formula at a position, or None."""
    if (environment := _ENVIRONMENT.match(src, at, limit)) is not None:
        closer = f"\\end{{{environment[1]}{environment[2]}}}"
        end = src.find(closer, environment.end(), limit) + len(closer)
        return _Place(at, end, end) if end >= len(closer) else None
    opener = src[at : at + 2] if src[at : at + 2] in _CLOSERS else src[at]
    if opener not in _CLOSERS:
        return None
    first, closer = at + len(opener), _CLOSERS[opener]
    last = _find_closer(src, closer, first, limit)
    if last < 0 or (opener == "$" and not _is_inline(src, first, last)):
        return None
    # Only the innermost of several that end at the same place is read.
    inner = src[first:last].replace("\\\\", "")
    if not inner.strip() or (opener != "$" and opener in inner):
        return None
    return _Place(first, last, last + len(closer))


def _find_closer(src: str, closer: str, first: int, limit: int) -> int:
    """Return the position of the next closing delimiter that isn't escaped."""
    last = src.find(closer, first, limit)
    while last >= 0:
        at = last
        while at > first and src[at - 1] == "\\":
            at -= 1
        if (last - at) % 2 == 0:
            break
        last = src.find(closer, last + 1, limit)
    return last


def _is_inline(src: str, first: int, last: int) -> bool:
    """Whether two dollar signs enclose a formula; beside those of prices are spaces or digits."""
    inner = src[first:last]
    following = src[last + 1 : last + 2]
    return (
        bool(inner)
        and not inner[0].isspace()
        and not inner[-1].isspace()
        and (not following.isalnum() or is_unspaced(following))
        and "\n\n" not in inner
    )


def formula_block_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Block rule: the lines of a displayed formula can't begin lists or headings."""
    at = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or state.src[at : at + 1] not in ("$", "\\"):
        return False
    if (environment := _ENVIRONMENT.match(state.src, at)) is not None:
        closer, first = f"\\end{{{environment[1]}{environment[2]}}}", environment.end()
    elif (opener := state.src[at : at + 2]) in _DISPLAYED:
        closer, first = _CLOSERS[opener], at + 2
    else:
        return False
    line = start
    while True:
        found = state.src.find(closer, first, state.eMarks[line])
        line += 1
        if found >= 0:
            break
        if line >= end or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            break
        first = state.bMarks[line]
    if silent:
        return True
    content = state.getLines(start, line, state.blkIndent, False).strip()
    state.line = line
    token = state.push("paragraph_open", "p", 1)
    token.map = [start, line]
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = content, [start, line], []
    state.push("paragraph_close", "p", -1)
    return True
