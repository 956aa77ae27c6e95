"""Colours and fonts of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from app.markdown.tokens import LOOKUP


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
        head_tints: Background of tokens drafted by head 1, 2, ...; later heads start again.
        head_underlines: Underline of the same, as many.
        lookup_tint: Background of tokens that a lookup found.
        lookup_underline: Underline of the same.
        phrases_tint: Background of tokens that the model often says there.
        phrases_underline: Underline of the same.
        inks: Colours of code.
        text_families: Font families, best first.
        mono_families: Font families of code, best first.
        text_size_pt: Size of the text.
        mono_size_pt: Size of code.
    """

    text: str
    muted: str
    link: str
    rule: str
    code_background: str
    head_tints: tuple[str, ...]
    head_underlines: tuple[str, ...]
    lookup_tint: str
    lookup_underline: str
    phrases_tint: str
    phrases_underline: str
    inks: CodeInks
    text_families: tuple[str, ...]
    mono_families: tuple[str, ...]
    text_size_pt: float = 11.0
    mono_size_pt: float = 10.0

    def tint(self, mark: int) -> str:
        """Background of tokens with a mark: a head, 1-based, `LOOKUP` or `PHRASES`."""
        if mark < 0:
            return self.lookup_tint if mark == LOOKUP else self.phrases_tint
        return self.head_tints[(mark - 1) % len(self.head_tints)]

    def underline(self, mark: int) -> str:
        """Underline of tokens with a mark."""
        if mark < 0:
            return self.lookup_underline if mark == LOOKUP else self.phrases_underline
        return self.head_underlines[(mark - 1) % len(self.head_underlines)]

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
