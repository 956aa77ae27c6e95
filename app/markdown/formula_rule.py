r"""Where formulas stand: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`; a price is none."""

from __future__ import annotations

from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from app.markdown.formulas import FORMULA_CHARS, formula_text

FORMULA = "formula"
_CLOSERS = {"$$": "$$", "\\(": "\\)", "\\[": "\\]", "$": "$"}
_DISPLAYED = ("$$", "\\[")


def formula_rule(state: StateInline, silent: bool) -> bool:
    """An inline rule: a formula that has a good text becomes one token."""
    src, at = state.src, state.pos
    opener = src[at : at + 2] if src[at : at + 2] in _CLOSERS else src[at]
    if opener not in _CLOSERS:
        return False
    first = at + len(opener)
    closer = _CLOSERS[opener]
    last = src.find(closer, first, first + FORMULA_CHARS + len(closer))
    if last < 0 or (opener == "$" and not _is_inline(src, first, last)):
        return False
    inner = src[first:last]
    # Only the innermost of several that end at the same place is read.
    text = None if opener in inner.replace("\\\\", "") else formula_text(inner)
    end = last + len(closer)
    # As long as its source, it would seem to stand for it character by character.
    if text is None or len(text) == end - at:
        return False
    if not silent:
        token = state.push(FORMULA, "", 0)
        token.content, token.markup = text, src[at:end]
    state.pos = end
    return True


def _is_inline(src: str, first: int, last: int) -> bool:
    """Whether two dollar signs enclose a formula: a price has a space or a digit there."""
    inner = src[first:last]
    behind = src[last + 1 : last + 2]
    return (
        bool(inner)
        and not inner[0].isspace()
        and not inner[-1].isspace()
        and not behind.isalnum()
        and "\n\n" not in inner
    )


def formula_block_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A block rule: no list or heading begins between the lines of a displayed formula."""
    at = state.bMarks[start] + state.tShift[start]
    opener = state.src[at : at + 2]
    if opener not in _DISPLAYED or state.is_code_block(start):
        return False
    closer = _CLOSERS[opener]
    line, first = start, at + 2
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
