"""The few HTML tags that models write in tables and formulas: `<br>`, `<sub>` and `<sup>`."""

from __future__ import annotations

import re

from markdown_it.rules_inline import StateInline

HTML_BREAK = "html_break"
_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_SCRIPT = re.compile(r"<(sub|sup)>", re.IGNORECASE)
# Limit of the search for the end tag, so that parsing stays linear.
_SCRIPT_CHARS = 200


def html_rule(state: StateInline, silent: bool) -> bool:
    """Inline rule of markdown-it for `<br>` and for short texts in `<sub>` or `<sup>`."""
    src, at = state.src, state.pos
    if src[at] != "<":
        return False
    if (tag := _BREAK.match(src, at, state.posMax)) is not None:
        if not silent:
            state.push(HTML_BREAK, "br", 0).markup = tag[0]
        state.pos = tag.end()
        return True
    return _script(state, silent)


def _script(state: StateInline, silent: bool) -> bool:
    """Parse a short text in `<sub>` or `<sup>`."""
    opener = _SCRIPT.match(state.src, state.pos, state.posMax)
    if opener is None:
        return False
    name, first = opener[1].lower(), opener.end()
    closer = f"</{name}>"
    window = state.src[first : min(state.posMax, first + _SCRIPT_CHARS + len(closer))]
    length = window.lower().find(closer)
    if length <= 0 or "\n" in window[:length]:
        return False
    if not silent:
        end, state.posMax = state.posMax, first + length
        state.pos = first
        state.push(f"{name}_open", name, 1)
        state.md.inline.tokenize(state)
        state.pos = state.posMax
        state.push(f"{name}_close", name, -1)
        state.posMax = end
    state.pos = first + length + len(closer)
    return True
