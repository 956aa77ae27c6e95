"""Estimated height and searchable text of messages that aren't laid out."""

from __future__ import annotations

from app.markdown.bounds import Bounds
from app.markdown.json_parser import JsonParser
from app.markdown.model import LINE_BREAK, runs_of
from app.markdown.parser import MarkdownParser
from app.theme.fonts import FontScale

_CHAR_EM, _LINE_EM, _REST_EM = 0.5, 1.6, 4.5


def estimated_text_px(text: str, width_px: int, scale: FontScale) -> int:
    """Estimate the height of a message with its margins, at a width."""
    chars_per_line = max(10.0, width_px / (_CHAR_EM * scale.px(1.0)))
    num_lines = text.count("\n") + len(text) / chars_per_line
    return round(num_lines * scale.px(_LINE_EM) + scale.px(_REST_EM))


def rendered_text(source: str, *, is_json: bool = False) -> str:
    """Return the displayed text of Markdown or JSON without a layout."""
    if len(source) > Bounds().block:
        return source
    parser = JsonParser() if is_json else MarkdownParser()
    blocks = parser.parse(source).blocks
    lines = ("".join(run.text for run in runs) for block in blocks for runs in runs_of(block))
    return "\n".join(lines).replace(LINE_BREAK, "\n")
