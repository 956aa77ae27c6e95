"""Divide files into sections at their pages and headings.

Files are untrusted: call this in a process with limits of time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from medusa_core.chats.attachments.bounds import check_length
from medusa_core.chats.attachments.decoding import decoded
from medusa_core.chats.attachments.docx import DocxText, read_docx
from medusa_core.chats.attachments.html_page import decode_page, read_html
from medusa_core.chats.attachments.kinds import suffix_of
from medusa_core.chats.attachments.pdf import pages_of_pdf
from medusa_core.documents.chunks import SEPARATOR, Section
from medusa_core.errors import AttachmentError
from medusa_core.i18n import tr

MOST_CHARS = 8_000_000
_HTML = frozenset({"html", "htm", "xhtml"})
_MARKDOWN = frozenset({"md", "markdown", "mkd", "qmd", "rmd"})
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_PARAGRAPH = re.compile(r" {0,3}[^\s>#|`~-]")  # a line that an underline may make a heading
_MOST_HEADING_CHARS = 120


def sections_of(name: str, file: BinaryIO) -> Iterator[Section]:
    """Yield the sections of a file.

    Args:
        name: File name, whose suffix selects the parser.
        file: The file, positioned at its start.

    Raises:
        AttachmentError: It isn't text, is damaged, or holds too much.
        OSError: It can't be read.
    """
    begin = file.read(8)
    file.seek(0)
    suffix = suffix_of(name)
    if begin.startswith(b"%PDF") or suffix == "pdf":
        for number, page in enumerate(pages_of_pdf(file, MOST_CHARS), 1):
            yield Section(clean(page), tr("p. {0}", number), is_page=True)
    elif begin.startswith(b"PK") and suffix == "docx":
        yield from _by_styles(read_docx(file, MOST_CHARS))
    elif suffix in _HTML:
        html = read_html(_checked(decode_page(_text_bytes(file))))
        yield from by_headings(clean(html.text), clean(html.title))
    else:
        text = clean(_checked(decoded(_text_bytes(file))))
        yield from by_headings(text) if suffix in _MARKDOWN else [Section(text)]


def by_headings(text: str, title: str = "") -> Iterator[Section]:
    """Divide Markdown at its headings.

    Args:
        text: Markdown.
        title: Place of the text before the first heading.
    """
    above: list[tuple[int, str]] = []
    place, lines, first_line = title, list[str](), 1
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        level, heading = 0, ""
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif found := _ATX.match(line):
            level, heading = len(found[1]), _without_hashes(line[found.end() :])
        elif lines and (found := _SETEXT.match(line)) and _is_underlined(lines):
            level, heading = (1 if found[1][0] == "=" else 2), lines.pop().strip()
            line = f"{'#' * level} {heading}"
        if level:
            yield Section("\n".join(lines), place, place, first_line)
            above = [(upper, words) for upper, words in above if upper < level]
            above.append((level, heading.strip(" ¶")[:_MOST_HEADING_CHARS]))
            place = SEPARATOR.join(words for _, words in above if words)
            lines, first_line = [], number
        lines.append(line)
    yield Section("\n".join(lines), place, place, first_line)


def _without_hashes(heading: str) -> str:
    """Strip the closing hashes of an ATX heading."""
    heading = heading.strip()
    words = heading.rstrip("#")
    return words.rstrip() if not words or words[-1] in " \t" else heading


def _is_underlined(lines: list[str]) -> bool:
    """Whether the last line is a paragraph of its own, so that an underline makes it a heading."""
    is_alone = len(lines) == 1 or not _PARAGRAPH.match(lines[-2])
    return is_alone and _PARAGRAPH.match(lines[-1]) is not None


def _by_styles(docx: DocxText) -> Iterator[Section]:
    """Divide a Word document at its headings."""
    above: list[tuple[int, str]] = []
    place, begin = "", 0
    for start, end, level in docx.headings:
        yield Section(clean(docx.text[begin:start]), place, place)
        heading = " ".join(docx.text[start:end].split())[:_MOST_HEADING_CHARS]
        above = [(upper, words) for upper, words in above if upper < level]
        above.append((level, clean(heading)))
        place, begin = SEPARATOR.join(words for _, words in above), start
    yield Section(clean(docx.text[begin:]), place, place)


def _text_bytes(file: BinaryIO) -> bytes:
    """Read a file that must be text.

    Raises:
        AttachmentError: It isn't text.
    """
    data = file.read()
    try:
        decoded(data[:4096])
    except AttachmentError as error:
        raise AttachmentError("It isn't text.", is_skipped=True) from error
    return data


def _checked(text: str) -> str:
    """Return a text that isn't too long.

    Raises:
        AttachmentError: It is.
    """
    check_length(len(text), MOST_CHARS)
    return text


def clean(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode, and null characters."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", " ")
