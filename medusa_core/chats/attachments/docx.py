"""Extract the text of Word documents (.docx)."""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from pathlib import Path
from xml.parsers import expat

from medusa_core.chats.attachments.bounds import (
    MOST_XML_BYTES,
    check_length,
)
from medusa_core.errors import AttachmentError

_BODY = "word/document.xml"
_PIECE = 1 << 16
_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ENDS = {"p": "\n", "br": "\n", "cr": "\n", "tab": "\t", "tc": "\t", "tr": "\n"}


def text_of_docx(path: Path) -> str:
    """Extract the text of a document: a line per paragraph, cells separated by tabs.

    Raises:
        AttachmentError: The document is damaged, or its decompressed size is suspicious.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except (zipfile.BadZipFile, zlib.error, KeyError, expat.ExpatError, RuntimeError) as error:
        raise AttachmentError(
            "This Word document is damaged or protected.",
            "Save it anew as .docx, without a password.",
        ) from error


def _read(archive: zipfile.ZipFile) -> str:
    """Parse the document's body in pieces of limited total size."""
    collector, num_read = _Collector(), 0
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = _refuse_entities
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.data
    _check_size(archive.getinfo(_BODY).file_size)
    with archive.open(_BODY) as body:
        while piece := body.read(_PIECE):
            num_read += len(piece)
            _check_size(num_read)  # the size in the zip's header may be wrong
            parser.Parse(piece, False)
            check_length(collector.num_chars)
    parser.Parse(b"", True)
    return "".join(collector.pieces)


def _refuse_entities(*_declared: object) -> None:
    """Refuse XML entities, which could expand without limit."""
    raise AttachmentError(
        "This document defines entities, which no Word document does.",
        "Open it in a word processor and save it anew.",
    )


class _Collector:
    """Collects text from parser events, without building a tree."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.num_chars = 0
        self._inside = Counter[str]()

    def start(self, tag: str, _attributes: dict[str, str]) -> None:
        """Note that an element is open."""
        self._inside[tag.removeprefix(_NAMESPACE)] += 1

    def end(self, tag: str) -> None:
        """Note that an element is closed, and add the line end or tab that follows it."""
        name = tag.removeprefix(_NAMESPACE)
        self._inside[name] -= 1
        if name in _ENDS and not (name == "p" and self._inside["tc"]):
            self._add(_ENDS[name])

    def data(self, text: str) -> None:
        """Add text within a text run."""
        if self._inside["t"]:
            self._add(text)

    def _add(self, text: str) -> None:
        """Append a piece and count its characters."""
        self.pieces.append(text)
        self.num_chars += len(text)


def _check_size(num_bytes: int) -> None:
    """Refuse a body that unpacks to far more than documents have."""
    if num_bytes > MOST_XML_BYTES:
        raise AttachmentError(
            "This document unpacks to far more than it seems to hold.",
            "The file may be malicious. Copy the text that you need out of it.",
        )
