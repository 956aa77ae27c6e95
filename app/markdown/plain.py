"""Splits plain text into pieces that a document lays out one by one."""

from __future__ import annotations

import re
from itertools import islice

from app.markdown.bounds import PIECE_CHARS, PIECE_LINES
from app.markdown.model import LINE_BREAK, Paragraph, Place
from app.markdown.source_map import clean, one_to_one_runs
from app.widgets.qt_text import with_visible_controls

_LINE_END = re.compile("\r\n?|\n")


def plain_blocks(text: str, start: int) -> tuple[Paragraph, ...]:
    """Split a part of an answer; all pieces except the last are final.

    Args:
        text: The part, which begins at a piece.
        start: Its position in the answer.

    Returns:
        Adjacent paragraphs.
    """
    blocks: list[Paragraph] = []
    at = 0
    while at < len(text):
        cut = _cut(text, at)
        blocks.append(_piece(text[at:cut], start + at))
        at = cut
    return tuple(blocks)


def last_piece(text: str) -> int:
    """Return the start of the last block of plain text, which may still grow."""
    at = 0
    while (cut := _cut(text, at)) < len(text):
        at = cut
    return at


def word_end(text: str, start: int, limit: int) -> int:
    """Return where to cut a long text: after the last space of its second half, if any."""
    return text.rfind(" ", start + (limit - start) // 2, limit) + 1 or limit


def _cut(text: str, start: int) -> int:
    """Return the end of the piece that begins at a position."""
    end = len(text)
    limit = min(end, start + PIECE_CHARS)
    cut = word_end(text, start, limit) if limit < end else limit
    line_ends = islice(_LINE_END.finditer(text, start, limit), PIECE_LINES)
    for number, found in enumerate(line_ends, 1):
        if found.end() - start > PIECE_CHARS // 2 or number == PIECE_LINES:
            cut = found.end()
            break
    # Both halves of a line end stay together.
    return cut - 1 if cut == limit < end and text[cut - 1] == "\r" else cut


def _piece(text: str, start: int) -> Paragraph:
    source = clean(text, start)
    # The end of the paragraph stands for its last line end.
    # It may be code.
    shown = with_visible_controls(source.text).removesuffix("\n").replace("\n", LINE_BREAK)
    return Paragraph(Place(), tuple(one_to_one_runs(shown, source.origins)), goes_on=True)
