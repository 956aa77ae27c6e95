"""Lines that end between words, of a text that is shown character by character."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from prompt_toolkit.utils import get_cwidth

_TAB = 8


class WrappedPiece(NamedTuple):
    """Something to write.

    Attributes:
        text: What.
        style: How; empty for plainly.
        moves: It moves the cursor, and is no part of the text.
    """

    text: str
    style: str = ""
    moves: bool = False


class WordWrap:
    """Takes a word that doesn't fit any more from a line's end to the next line.

    It is on the screen by then, so that nothing waits for a word's end.
    """

    def __init__(self, columns: int) -> None:
        """Begin at the first column.

        Args:
            columns: Of the terminal.
        """
        self._columns = columns
        self._column = 0
        self._word: list[WrappedPiece] = []  # what stands behind the last space
        self._word_start = 0

    def wrapped(self, text: str, style: str) -> Iterator[WrappedPiece]:
        """What to write for the next piece of a text."""
        run = ""
        for char in text:
            width = 0 if char == "\n" else self._width(char)
            if self._column + width > self._columns:
                yield WrappedPiece(run, style)
                run = ""
                if char.isspace():  # the line's end stands for it
                    char, width = "\n", 0
                else:
                    yield from self._next_line()
            run += char
            self._take(char, width, style)
        if run:
            yield WrappedPiece(run, style)

    def _width(self, char: str) -> int:
        """Columns that a character takes."""
        return _TAB - self._column % _TAB if char == "\t" else get_cwidth(char)

    def _take(self, char: str, width: int, style: str) -> None:
        self._column = 0 if char == "\n" else self._column + width
        if char.isspace():
            self._word_start = self._column
            self._word.clear()
        else:
            self._word.append(WrappedPiece(char, style))

    def _next_line(self) -> Iterator[WrappedPiece]:
        """Take the word along; one that fills the line is cut by the terminal itself."""
        word, start = self._word, self._word_start
        self._word_start = 0
        if not start:
            self._column, self._word = 0, []
            return
        if word:
            yield WrappedPiece(f"\x1b[{start + 1}G\x1b[K", moves=True)
        yield WrappedPiece("\n", moves=True)
        yield from _joined(word)
        self._column -= start


def _joined(word: list[WrappedPiece]) -> Iterator[WrappedPiece]:
    """Neighbours of one style together."""
    run = ""
    for place, one in enumerate(word):
        run += one.text
        if place + 1 == len(word) or word[place + 1].style != one.style:
            yield WrappedPiece(run, one.style)
            run = ""
