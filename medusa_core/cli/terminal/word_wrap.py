"""Word wrap of streamed text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from prompt_toolkit.utils import get_cwidth

_TAB = 8


class WrappedPiece(NamedTuple):
    """Text or a cursor move.

    Attributes:
        text: Text or control sequence.
        style: Style of the text; empty for the default one.
        is_cursor_move: Whether `text` is a control sequence.
    """

    text: str
    style: str = ""
    is_cursor_move: bool = False


class WordWrap:
    """Moves an unfinished word from the end of a line to the next line.

    Text is written at once, and the beginning of the word is erased when it moves.
    """

    def __init__(self, columns: int) -> None:
        """Initialize.

        Args:
            columns: Columns of the terminal.
        """
        self._columns = columns
        self._column = 0
        self._word: list[WrappedPiece] = []  # since the last space
        self._word_start = 0

    def wrapped(self, text: str, style: str) -> Iterator[WrappedPiece]:
        """Yield the output for the next piece of a text."""
        run = ""
        for char in text:
            width = 0 if char == "\n" else self._width(char)
            if self._column + width > self._columns:
                yield WrappedPiece(run, style)
                run = ""
                if char.isspace():  # the line break replaces it
                    char, width = "\n", 0
                else:
                    yield from self._next_line()
            run += char
            self._add(char, width, style)
        if run:
            yield WrappedPiece(run, style)

    def _width(self, char: str) -> int:
        """Return the columns of a character."""
        return _TAB - self._column % _TAB if char == "\t" else get_cwidth(char)

    def _add(self, char: str, width: int, style: str) -> None:
        """Add a character to the line and to the current word."""
        self._column = 0 if char == "\n" else self._column + width
        if char.isspace():
            self._word_start = self._column
            self._word.clear()
        else:
            self._word.append(WrappedPiece(char, style))

    def _next_line(self) -> Iterator[WrappedPiece]:
        """Move the word to the next line; the terminal splits words that fill a line."""
        word, start = self._word, self._word_start
        self._word_start = 0
        if not start:
            self._column, self._word = 0, []
            return
        if word:
            yield WrappedPiece(f"\x1b[{start + 1}G\x1b[K", is_cursor_move=True)
        yield WrappedPiece("\n", is_cursor_move=True)
        yield from _joined(word)
        self._column -= start


def _joined(word: list[WrappedPiece]) -> Iterator[WrappedPiece]:
    """Join adjacent pieces of the same style."""
    run = ""
    for place, one in enumerate(word):
        run += one.text
        if place + 1 == len(word) or word[place + 1].style != one.style:
            yield WrappedPiece(run, one.style)
            run = ""
