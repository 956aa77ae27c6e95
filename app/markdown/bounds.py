"""How much of an answer is formatted, and how much of it in one turn of the event loop.

Whatever a model writes, the window must go on moving. Formatting costs more than its share where
blocks are long, wide or full of markup; what goes beyond a bound is shown as plain text.
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
    """Bounds of a reader, in characters of the source where nothing else is said.

    Attributes:
        turn: Read in one turn.
        check: Distance of two checks of the limits below.
        line: A line that is formatted.
        block: A block that may still change, and is therefore read again in each turn.
        code: The same for code, which costs less.
        lines: Lines of a block that may still change.
        code_lines: The same for code, whose lines are laid out each for itself.
        formatted: All that is formatted.
        rewrite: A text that is written anew in one turn, in another style.
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
