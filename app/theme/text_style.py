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
    """Which tokens are marked, and how."""

    OFF = "off"
    ACCEPTED = "accepted"
    HEADS = "heads"


class Ink(str, Enum):
    """Syntax class of code, which has a colour."""

    PLAIN = "plain"
    KEYWORD = "keyword"
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class CodeInks:
    """Foreground colours of code, as "#rrggbb"."""

    keyword: str
    string: str
    comment: str
    number: str
    name: str


@dataclass(frozen=True, slots=True)
class MarkStyle:
    """Style of an answer; colours are "#rrggbb".

    Attributes:
        text: Text.
        muted: Quotations, and alternative texts of pictures.
        link: Links, which aren't underlined, since marks are.
        rule: Lines of tables.
        code_background: Background of code.
        palette: Tint and underline of marks, by name of their colour.
        legend: Names and marks of drafters.
        inks: Colours of syntax classes.
        text_families: Font families, best first.
        mono_families: Font families of code, best first.
        text_size_pt: Size of the text.
        mono_size_pt: Size of code.
        marking: Which tokens are marked, and how.
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
        """Return the background of a mark."""
        return self._colours(mark)[0]

    def underline(self, mark: Mark) -> str:
        """Return the underline's colour of a mark."""
        return self._colours(mark)[1]

    def line(self, mark: Mark) -> str:
        """Return the underline's style of a mark: solid, dash, dot, dash-dot or wave."""
        return self.legend.info(mark.source).line if mark != ACCEPTED else "solid"

    def _colours(self, mark: Mark) -> tuple[str, str]:
        plain = next(iter(self.palette.values()))
        if mark == ACCEPTED:
            return plain
        return self.palette.get(self.legend.colour(mark), plain)

    def ink(self, ink: Ink) -> str:
        """Return the foreground of a syntax class."""
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
