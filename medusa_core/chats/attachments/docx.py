"""Extract the text of Word documents (.docx)."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.parsers import expat

from medusa_core.chats.attachments.bounds import (
    MOST_CHARS,
    MOST_XML_BYTES,
    check_length,
)
from medusa_core.errors import AttachmentError

_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
# Members with notes, by the element that refers to one of them.
_NOTES = {"footnoteReference": "word/footnotes.xml", "endnoteReference": "word/endnotes.xml"}
_PIECE = 1 << 16
_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE, _STYLE_ID, _ID = (f"{_NAMESPACE}{name}" for name in ("val", "styleId", "id"))
_HEADING_STYLE = re.compile("heading ([1-9])")
_BODY_LEVEL = 9  # the outline level of text
_ENDS = {"p": "\n", "br": "\n", "cr": "\n", "tab": "\t", "tc": "\t", "tr": "\n"}


class DocxText(NamedTuple):
    """Text of a document.

    Attributes:
        text: A line per paragraph, cells separated by tabs, notes in brackets.
        headings: Begin, end and level (from 1) of the headings in it.
    """

    text: str
    headings: list[tuple[int, int, int]]


def text_of_docx(path: Path) -> str:
    """Extract the text of a document.

    Raises:
        AttachmentError: The document is damaged, or its decompressed size is suspicious.
    """
    return read_docx(path).text


def read_docx(file: Path | BinaryIO, most_chars: int = MOST_CHARS) -> DocxText:
    """Extract text and headings of a document.

    Args:
        file: The file, or its path.
        most_chars: Most characters.

    Raises:
        AttachmentError: The document is damaged or too long, or its decompressed size is
            suspicious.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            styles = _Styles()
            members = set(archive.namelist())
            if _STYLES in members:
                _parse(archive, _STYLES, styles.start, styles.end)
            notes: dict[tuple[str, str], str] = {}
            for kind, name in _NOTES.items():
                if name in members:
                    reader = _Collector({}, {}, most_chars)
                    _parse(archive, name, reader.start, reader.end, reader.data)
                    notes |= {(kind, number): text for number, text in reader.notes.items()}
            collector = _Collector(styles.levels, notes, most_chars)
            _parse(archive, _BODY, collector.start, collector.end, collector.data)
            return DocxText("".join(collector.pieces), collector.headings)
    except (zipfile.BadZipFile, zlib.error, KeyError, expat.ExpatError, RuntimeError) as error:
        raise AttachmentError(
            "This Word document is damaged or protected.",
            "Save it anew as .docx, without a password.",
        ) from error


def _parse(
    archive: zipfile.ZipFile,
    name: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    data: Callable[[str], None] | None = None,
) -> None:
    """Parse a member in pieces of limited total size."""
    num_read = 0
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = _refuse_entities
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = data
    _check_size(archive.getinfo(name).file_size)
    with archive.open(name) as member:
        while piece := member.read(_PIECE):
            num_read += len(piece)
            _check_size(num_read)  # the size in the zip's header may be wrong
            parser.Parse(piece, False)
    parser.Parse(b"", True)


def _refuse_entities(*_declared: object) -> None:
    """Refuse XML entities, which could expand without limit."""
    raise AttachmentError(
        "This document defines entities, which no Word document does.",
        "Open it in a word processor and save it anew.",
    )


class _Styles:
    """Collects the styles of headings, whose ids depend on the language of the word processor.

    Attributes:
        levels: Level of each style of headings, by its id.
    """

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self._style = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Note the style that begins, its name or its outline level."""
        name = tag.removeprefix(_NAMESPACE)
        value = attributes.get(_VALUE, "").lower()
        if name == "style":
            self._style = attributes.get(_STYLE_ID, "")
        elif name == "name" and value == "title":
            self.levels[self._style] = 1
        elif name == "name" and (found := _HEADING_STYLE.fullmatch(value)):
            self.levels[self._style] = int(found[1])
        elif name == "outlineLvl" and value.isdecimal() and int(value) < _BODY_LEVEL:
            self.levels.setdefault(self._style, int(value) + 1)

    def end(self, tag: str) -> None:
        """Note that a style ends."""
        if tag == f"{_NAMESPACE}style":
            self._style = ""


class _Collector:
    """Collects text from parser events, without building a tree."""

    def __init__(
        self, levels: dict[str, int], notes: dict[tuple[str, str], str], most_chars: int
    ) -> None:
        """Prepare.

        Args:
            levels: Level of each style of headings, by its id.
            notes: Notes by the element that refers to them, and their id.
            most_chars: Most characters.
        """
        self.pieces: list[str] = []
        self.headings: list[tuple[int, int, int]] = []
        self.notes: dict[str, str] = {}
        self._levels, self._notes, self._most_chars = levels, notes, most_chars
        self._num_chars = 0
        self._inside = Counter[str]()
        self._begin = self._level = 0  # of the paragraph
        self._note = ""  # id of the open one

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Note that an element is open, or the style of a paragraph."""
        name = tag.removeprefix(_NAMESPACE)
        self._inside[name] += 1
        if name == "p":
            self._begin, self._level = self._num_chars, 0
        elif name == "pStyle":
            self._level = self._levels.get(attributes.get(_VALUE, ""), 0)
        elif name in ("footnote", "endnote"):
            self.pieces = []
            self._note = attributes.get(_ID, "")
        elif note := self._notes.get((name, attributes.get(_ID, ""))):
            self._add(f" [{note}]")

    def end(self, tag: str) -> None:
        """Note that an element is closed, and add the line end or tab that follows it."""
        name = tag.removeprefix(_NAMESPACE)
        self._inside[name] -= 1
        if name == "p" and self._level and self._num_chars > self._begin:
            self.headings.append((self._begin, self._num_chars, self._level))
            self._level = 0
        if name in ("footnote", "endnote"):
            self.notes[self._note] = " ".join("".join(self.pieces).split())
        elif name in _ENDS and not (name == "p" and self._inside["tc"]):
            self._add(_ENDS[name])

    def data(self, text: str) -> None:
        """Add text within a text run."""
        if self._inside["t"]:
            self._add(text)

    def _add(self, text: str) -> None:
        """Append a piece and count its characters."""
        self.pieces.append(text)
        self._num_chars += len(text)
        check_length(self._num_chars, self._most_chars)


def _check_size(num_bytes: int) -> None:
    """Refuse a body that unpacks to far more than documents have."""
    if num_bytes > MOST_XML_BYTES:
        raise AttachmentError(
            "This document unpacks to far more than it seems to hold.",
            "The file may be malicious. Copy the text that you need out of it.",
        )
