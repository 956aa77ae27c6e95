"""Detect the encoding of a text file."""

from __future__ import annotations

import codecs

from medusa_core.errors import AttachmentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 4096
# Control characters that don't occur in text.
_BINARY = frozenset(range(9)) | frozenset(range(14, 27)) | frozenset(range(28, 32))


def decoded(data: bytes) -> str:
    """Decode UTF-8, UTF-16, UTF-32, else Windows-1252, and normalize line ends.

    Raises:
        AttachmentError: The data isn't text.
    """
    text = _decoded(data)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes) -> str:
    """Decode by BOM, else as UTF-16, UTF-8 or Windows-1252; binary files raise."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    begin = data[:_SAMPLE_BYTES]
    if 0 in begin:
        return _unmarked_utf16(data, begin)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    num_binary = sum(byte in _BINARY for byte in begin)
    if num_binary > len(begin) // 50:
        raise not_text()
    return text or data.decode("cp1252", "replace")


def _unmarked_utf16(data: bytes, sample: bytes) -> str:
    """Decode UTF-16 without a BOM: in Western text, every other byte is zero."""
    halves = (sample[0::2].count(0), sample[1::2].count(0))
    most = len(sample) // 2
    if max(halves) > 0.7 * most and min(halves) < 0.05 * most + 1:
        return data.decode("utf-16-le" if halves[1] > halves[0] else "utf-16-be", "replace")
    raise not_text()


def not_text() -> AttachmentError:
    """Return the error for a binary file."""
    return AttachmentError(
        "This file isn't text.", "Attach text, code, a PDF or a Word document (.docx)."
    )
