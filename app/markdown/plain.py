"""Text as it stands, in pieces that a document can lay out one by one."""

from __future__ import annotations

from app.markdown.bounds import PIECE_CHARS, PIECE_LINES
from app.markdown.model import LINE_BREAK, Paragraph, Place
from app.markdown.source_map import clean, one_to_one_runs


def plain_blocks(text: str, start: int, end: int) -> tuple[Paragraph, ...]:
    """Pieces of a part of a text; all but the last stay as they are when more follows.

    Args:
        text: The whole answer.
        start: Where the part begins: at the beginning of a piece.
        end: Where it ends.

    Returns:
        Paragraphs that touch each other.
    """
    blocks: list[Paragraph] = []
    while start < end:
        cut = _cut(text, start, end)
        blocks.append(_piece(text[start:cut], start))
        start = cut
    return tuple(blocks)


def last_piece(text: str, start: int, end: int) -> int:
    """Where the last piece of a part begins, which may still grow."""
    while (cut := _cut(text, start, end)) < end:
        start = cut
    return start


def _cut(text: str, start: int, end: int) -> int:
    """Where the piece ends that begins at a position."""
    limit = min(end, start + PIECE_CHARS)
    at = start
    for _ in range(PIECE_LINES):
        line_end = text.find("\n", at, limit)
        if line_end < 0:
            break
        at = line_end + 1
        if at - start > PIECE_CHARS // 2:
            return at
    else:
        return at
    # Both halves of a line end stay together.
    return limit - 1 if limit < end and text[limit - 1] == "\r" else limit


def _piece(text: str, start: int) -> Paragraph:
    source = clean(text, start)
    # The end of the paragraph stands for its last line end.
    shown = source.text.removesuffix("\n").replace("\n", LINE_BREAK)
    return Paragraph(Place(), tuple(one_to_one_runs(shown, source.origins)), goes_on=True)
