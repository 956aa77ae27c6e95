"""Maps positions of cleaned text back to the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.markdown.model import LINE_BREAK, Run, TextStyle
from app.widgets.qt_text import showable


class CleanText(NamedTuple):
    """Text with normalised line ends and displayable characters.

    Attributes:
        text: The clean text.
        origins: Source position of each clean character, and of the end.
    """

    text: str
    origins: Sequence[int]


def clean(text: str, start: int) -> CleanText:
    """Normalise line ends, and replace characters that can't be displayed.

    Args:
        text: A piece of the source.
        start: Position of its first character in the source.

    Returns:
        The clean text with source positions. Of a carriage return and a
        line feed, the line feed is kept.
    """
    if "\r" not in text:
        return CleanText(showable(text), range(start, start + len(text) + 1))
    kept = [i for i, char in enumerate(text) if char != "\r" or text[i + 1 : i + 2] != "\n"]
    replaced = "".join(text[i] for i in kept).replace("\r", "\n")
    return CleanText(showable(replaced), [start + i for i in (*kept, len(text))])


def on_one_line(text: str) -> str:
    """Return the displayed text of an entity, without characters that end a block."""
    return showable(text).replace("\n", LINE_BREAK).replace("\r", LINE_BREAK)


def one_to_one_runs(
    text: str, origins: Sequence[int], style: TextStyle = TextStyle.PLAIN, href: str = ""
) -> list[Run]:
    """Make runs of a text whose characters each come from one source character.

    Args:
        text: Displayed text.
        origins: Source position of each character; the same position several times in a row means
            that one source character is displayed as several.
        style: Style of the text.
        href: Target of the link; may be empty.

    Returns:
        The fewest runs that `origins` allows.
    """
    runs: list[Run] = []
    first = 0
    while first < len(text):
        end = _end_of_stretch(origins, first, len(text))
        runs.append(Run(text[first:end], origins[first], origins[end - 1] + 1, style, href))
        first = end
    return runs


def _end_of_stretch(origins: Sequence[int], first: int, end: int) -> int:
    """Return the end of the longest stretch whose origins all increase by one, or all repeat."""
    if isinstance(origins, range) or first + 1 == end:
        return end
    i = first + 1
    if origins[i] == origins[first]:
        while i < end and origins[i] == origins[first]:
            i += 1
        return i
    while i < end and origins[i] == origins[i - 1] + 1:
        if i + 1 < end and origins[i + 1] == origins[i]:
            break
        i += 1
    return i
