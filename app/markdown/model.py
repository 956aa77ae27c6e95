"""Data model of a parsed answer: flat blocks of runs with source positions.

Nesting is flattened: a block in a list in a quotation is one block with a `Place`. Positions
are indices of characters in the answer's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

LINE_BREAK = "\u2028"
# Targets of citations: the number of a passage follows, which exists or not.
CITATION, UNKNOWN_CITATION = "passage:", "no-passage:"


class TextStyle(IntFlag):
    """Style of a run, apart from colours."""

    PLAIN = 0
    STRONG = 1
    EMPHASIS = 2
    STRIKE = 4
    CODE = 8
    IMAGE = 16
    MATH = 32
    SUBSCRIPT = 64
    SUPERSCRIPT = 128


class Run(NamedTuple):
    """Characters of one style from one part of the source.

    Attributes:
        text: Displayed text.
        start: First source character, inclusive.
        end: Last source character, exclusive. If the part is as long as `text`, character i
            comes from `start + i`; else (entities, partly consumed tabs, formulas) all
            characters come from the whole part.
        style: Its style.
        href: Target of its link: http, https, or a citation; empty outside links.
    """

    text: str
    start: int
    end: int
    style: TextStyle = TextStyle.PLAIN
    href: str = ""

    @property
    def is_one_to_one(self) -> bool:
        """Whether character i of the text comes from source character `start + i`."""
        return len(self.text) == self.end - self.start and not self.style & TextStyle.MATH


Runs = tuple[Run, ...]


class Marker(NamedTuple):
    """The bullet or number of a list item.

    Attributes:
        ordered: Whether it is a number.
        number: The number; 0 for a bullet.
        delimiter: What follows the number in the source, `.` or `)`; the bullet itself otherwise.
    """

    ordered: bool
    number: int
    delimiter: str


class Place(NamedTuple):
    """Nesting of a block.

    Attributes:
        list_depth: Number of lists around it.
        quote_depth: Number of quotations around it.
        marker: Its list marker; None except for the first block of an item.
    """

    list_depth: int = 0
    quote_depth: int = 0
    marker: Marker | None = None


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, or a heading of level 1 to 6; level 0 means no heading.

    Attributes:
        place: Its nesting.
        runs: Its text.
        level: Level of the heading.
        goes_on: Whether it continues the text before it without spacing.
    """

    place: Place
    runs: Runs
    level: int = 0
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Fenced or indented code.

    Attributes:
        place: Its nesting.
        lines: Runs of each line, without line ends.
        language: First word after the fence; may be empty.
        is_open: Whether more lines may follow.
    """

    place: Place
    lines: tuple[Runs, ...]
    language: str
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first row is its header.

    Attributes:
        place: Its nesting.
        alignments: `left`, `center`, `right` or empty, for each column.
        rows: Cells of each row, one for each column.
        is_rtl: Whether its text and columns run from right to left. Qt's tables can't,
            so the document has the cells of each row in reverse order.
    """

    place: Place
    alignments: tuple[str, ...]
    rows: tuple[tuple[Runs, ...], ...]
    is_rtl: bool = False


@dataclass(frozen=True, slots=True)
class ThematicBreak:
    """A horizontal line."""

    place: Place


MarkdownBlock = Paragraph | CodeBlock | Table | ThematicBreak


def runs_of(block: MarkdownBlock) -> tuple[Runs, ...]:
    """Return the runs of each line of a block.

    Args:
        block: Any block.

    Returns:
        One line for a paragraph or a rule, the lines of code, the cells of a table row by row, in
        the order in which a document has them.
    """
    match block:
        case Paragraph():
            return (block.runs,)
        case CodeBlock():
            return block.lines
        case Table():
            step = -1 if block.is_rtl else 1
            return tuple(cell for row in block.rows for cell in row[::step])
        case ThematicBreak():
            return ((),)
