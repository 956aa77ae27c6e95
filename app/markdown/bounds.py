"""Limits of formatting an answer, in total and in one iteration of the event loop.

The window must stay responsive whatever a model writes. Formatting is slow where
blocks are long, wide or full of markup; text beyond a limit is shown as plain text.
"""

from __future__ import annotations

from dataclasses import dataclass

# One block of the document; a text layout takes a block as a whole.
PIECE_CHARS = 2_000
PIECE_LINES = 50
# A table's layout measures every cell again whenever one changes.
TABLE_CELLS = 400
TABLE_COLUMNS = 40
# Inline markup: its rules look ahead from every character that may begin some.
INLINE_CHARS = 10_000
INLINE_OPENERS = 1_000
# Each open bracket makes them look for its partner, at worst up to the end: brackets × characters.
INLINE_BRACKET_WORK = 250_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a reader, in source characters unless noted.

    Attributes:
        turn: Read in one iteration.
        check: Distance of two checks of the limits below.
        line: Length of a formatted line.
        block: Length of an open block, which is read again in each iteration.
        code: Length of an open block of code, which is faster to read.
        lines: Lines of an open block.
        code_lines: Lines of an open block of code, which are laid out separately.
        formatted: Total length of formatted text.
        rewrite: Length of a text that is restyled in one iteration.
    """

    turn: int = 1_024
    check: int = 2_048
    line: int = 6_000
    block: int = 8_000
    code: int = 40_000
    lines: int = 400
    code_lines: int = 1_000
    formatted: int = 150_000
    rewrite: int = 20_000
