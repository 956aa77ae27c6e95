"""Colours and fonts of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from app.theme.legend import (
    Legend,
    Mark,
)

ACCEPTED = Mark("", 0)  # where whoever drafted a token has the same mark


class Marking(str, Enum):
    """How much of where tokens came from is shown."""

    OFF = "off"
    ACCEPTED = "accepted"
    HEADS = "heads"


class Ink(str, Enum):
    """What a piece of code is, as far as its colour goes."""

    PLAIN = "plain"
    KEYWORD = "keyword"
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class CodeInks:
    """Foreground colours in code, as "#rrggbb"."""

    keyword: str
    string: str
    comment: str
    number: str
    name: str


@dataclass(frozen=True, slots=True)
class MarkStyle:
    """Everything that an answer's look depends on; colours are "#rrggbb".

    Attributes:
        text: Words.
        muted: Quotations and the text that stands for a picture.
        link: Links; they have no underline, which belongs to the marks.
        rule: Lines of tables.
        code_background: Behind code, in the line or as a block.
        palette: Tint and underline of marks, by the names of their colours.
        legend: Says whose marks are which.
        inks: Colours of code.
        text_families: Font families, best first.
        mono_families: Font families of code, best first.
        text_size_pt: Size of the text.
        mono_size_pt: Size of code.
        marking: Which tokens are marked, and by what.
    """

    text: str
    muted: str
    link: str
    rule: str
    code_background: str
    palette: Mapping[str, tuple[str, str]]
    legend: Legend
    inks: CodeInks
    text_families: tuple[str, ...]
    mono_families: tuple[str, ...]
    text_size_pt: float = 11.0
    mono_size_pt: float = 10.0
    marking: Marking = Marking.HEADS

    def tint(self, mark: Mark) -> str:
        """Background of tokens with a mark."""
        return self._colours(mark)[0]

    def underline(self, mark: Mark) -> str:
        """Underline of tokens with a mark."""
        return self._colours(mark)[1]

    def line(self, mark: Mark) -> str:
        """How they are underlined: solid, dash, dot, dash-dot or wave."""
        return self.legend.info(mark.source).line if mark != ACCEPTED else "solid"

    def _colours(self, mark: Mark) -> tuple[str, str]:
        plain = next(iter(self.palette.values()))
        if mark == ACCEPTED:
            return plain
        return self.palette.get(self.legend.colour(mark), plain)

    def ink(self, ink: Ink) -> str:
        """Foreground of a piece of code."""
        match ink:
            case Ink.KEYWORD:
                return self.inks.keyword
            case Ink.STRING:
                return self.inks.string
            case Ink.COMMENT:
                return self.inks.comment
            case Ink.NUMBER:
                return self.inks.number
            case Ink.NAME:
                return self.inks.name
            case Ink.PLAIN:
                return self.text
