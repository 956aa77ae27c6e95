"""Texts of tool calls as people see them."""

from __future__ import annotations

import json

from app.widgets.qt_text import showable, with_visible_controls
from medusa_core.api import visible_text

_MOST_INDENTED_CHARS = 1 << 14  # deeply nested arguments become a thousand times longer
_MOST_LABEL_CHARS = 200


def arguments_text(arguments: str) -> str:
    """Return arguments with an indent; characters that can't be seen are written as escapes."""
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return visible_text(arguments)
    indent = 2 if len(arguments) <= _MOST_INDENTED_CHARS else None
    return visible_text(json.dumps(values, ensure_ascii=False, indent=indent))


def one_line(text: str, most_chars: int = _MOST_LABEL_CHARS) -> str:
    """Return a name in one line of limited length."""
    text = with_visible_controls(showable(" ".join(text.split())))
    return text if len(text) <= most_chars else f"{text[:most_chars]}…"
