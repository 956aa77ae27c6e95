"""What a document shows, read back from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from PySide6.QtGui import QTextBlock, QTextCharFormat, QTextCursor, QTextDocument, QTextTable

from app.chat.messages.answer_document import AnswerDocument
from app.theme.text_style import (
    CodeInks,
    MarkStyle,
)
from tests.support.window.engine_events import LEGEND
from tests.support.window.markdown_samples import is_unique_char

STYLE = MarkStyle(
    text="#101010",
    muted="#606060",
    link="#155d92",
    rule="#dededa",
    code_background="#f2f2ef",
    palette={
        "blue": ("#d9ebf8", "#0072b2"),
        "amber": ("#fbe8c4", "#b37400"),
        "green": ("#d3f0e6", "#008a65"),
        "pink": ("#f6e0ed", "#b85c91"),
        "vermilion": ("#fae0d2", "#c65600"),
        "grey": ("#e6e5df", "#55585d"),
        "violet": ("#ddddee", "#554499"),
    },
    legend=LEGEND,
    inks=CodeInks("#7a3e9d", "#2f7d32", "#7a7d80", "#9a5b00", "#155d93"),
    text_families=("Inter",),
    mono_families=("JetBrains Mono",),
)

LINE_ENDS = "\u2028\u2029"


class Fragment(NamedTuple):
    position: int
    text: str
    underline: str
    look: tuple[object, ...]


def utf16_units(text: str) -> int:
    return sum(2 if ord(char) > 0xFFFF else 1 for char in text)


def blocks_of(document: QTextDocument) -> Iterator[QTextBlock]:
    block = document.begin()
    while block.isValid():
        yield block
        block = block.next()


def fragments_of(block: QTextBlock) -> list[Fragment]:
    fragments: list[Fragment] = []
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        fmt = fragment.charFormat()
        is_underlined = fmt.underlineStyle() != QTextCharFormat.UnderlineStyle.NoUnderline
        underline = fmt.underlineColor().name() if is_underlined else ""
        look = (
            fmt.foreground().color().name(),
            fmt.background().color().name() if fmt.hasProperty(0x820) else "",
            fmt.fontWeight(),
            fmt.fontItalic(),
            fmt.fontStrikeOut(),
            fmt.fontPointSize(),
            tuple(fmt.fontFamilies()),
            fmt.anchorHref(),
        )
        fragments.append(Fragment(fragment.position(), fragment.text(), underline, look))
        iterator += 1
    return fragments


def contents(document: QTextDocument) -> list[object]:
    return [(place_of(block), fragments_of(block)) for block in blocks_of(document)]


def place_of(block: QTextBlock) -> tuple[object, ...]:
    """Everything about a block but its characters."""
    fmt = block.blockFormat()
    one = block.textList()
    frame = QTextCursor(block).currentFrame()
    cell = ()
    if isinstance(frame, QTextTable):
        at = frame.cellAt(block.position())
        cell = (at.row(), at.column(), frame.rows(), frame.columns())
    return (
        fmt.topMargin(),
        fmt.leftMargin(),
        fmt.indent(),
        fmt.headingLevel(),
        int(fmt.alignment()),
        fmt.lineHeight(),
        one.itemText(block) if one is not None else "",
        frame.firstPosition(),
        frame.lastPosition(),
        cell,
    )


def shown_chars(document: QTextDocument) -> list[tuple[str, str]]:
    """Return all characters of a document with their colours, without line ends."""
    return [
        (char, fragment.underline)
        for block in blocks_of(document)
        for fragment in fragments_of(block)
        for char in fragment.text
        if char not in LINE_ENDS
    ]


def underlined_chars(document: QTextDocument) -> list[tuple[str, str]]:
    """Return the underlined characters that occur once in their document."""
    return [one for one in shown_chars(document) if is_unique_char(one[0])]


def positions_of_ranges(view: AnswerDocument) -> set[int]:
    """Return the positions that the document reports as marked."""
    return {at for one in view.marked_ranges() for at in range(one.start, one.end)}


def underlined_positions(document: QTextDocument) -> set[int]:
    """Return the positions whose format is underlined."""
    return {
        at
        for block in blocks_of(document)
        for fragment in fragments_of(block)
        if fragment.underline
        for at in range(fragment.position, fragment.position + utf16_units(fragment.text))
    }


def plain_text(document: AnswerDocument) -> str:
    """An answer as it is read: without markup, a line for each line."""
    return "\n".join(
        "".join(span.text for span in spans).replace("\u2028", "\n")
        for _, spans in document._writer.lines()
    )
