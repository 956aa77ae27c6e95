"""Extract title and text of HTML pages.

Pages are untrusted, and some input makes Python's parser quadratic: call this in a process with
limits of time and memory.
"""

from __future__ import annotations

import codecs
import re
from html.parser import HTMLParser
from typing import NamedTuple

_MOST_TITLE_CHARS = 300
_LEAST_MAIN_CHARS = 200  # a shorter <main> or <article> is no content, or filled by a script
_DEEPEST_LIST = 8
_SKIPPED = frozenset({
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "select",
    "button", "textarea", "audio", "video", "map", "datalist", "dialog",
})  # fmt: skip
_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr",
})  # fmt: skip
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "head", "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul",
})  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# Control characters, which would act on a terminal; tab and line end are spaces.
_CONTROLS = dict.fromkeys((*range(9), 11, *range(14, 32), *range(127, 160)))
_META_BYTES = 2048
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Browsers read the left ones as the right ones, which are supersets.
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
# Python has codecs that aren't charsets, such as unicode_escape.
_CHARSET = re.compile(
    r"utf-(8|16|16-le|16-be)|iso8859-\d+|cp(125\d|866|874|932|949)|koi8-[ru]|gb18030|big5|euc_jp"
    r"|iso2022_jp|mac-(roman|cyrillic)"
)


class HtmlPage(NamedTuple):
    """A page as text.

    Attributes:
        title: Its title on one line; empty if it has none.
        text: Its text as Markdown: headings, list items, rows of tables, code blocks.
    """

    title: str
    text: str


def read_html(source: str) -> HtmlPage:
    """Extract what a reader sees of a page: without scripts, hidden elements and navigation.

    If it marks its main content (`<main>` or `<article>`), only that is extracted.
    """
    reader = _read(source, drops_navigation=True)
    if not reader.blocks:  # all of it is in a <nav>, or one isn't closed
        reader = _read(source, drops_navigation=False)
    main = [text for text, is_main in reader.blocks if is_main]
    if sum(map(len, main)) < _LEAST_MAIN_CHARS:
        main = [text for text, _ in reader.blocks]
    return HtmlPage(_words(reader.title)[:_MOST_TITLE_CHARS], _joined(main))


def decode_page(data: bytes, charset: str = "") -> str:
    """Decode a page by BOM, the charset of the HTTP header, `<meta>`, UTF-8 or Windows-1252.

    Args:
        data: The page.
        charset: Charset of the header; empty or unknown for none.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    encoding = _encoding(charset)
    if not encoding and (found := _META_CHARSET.search(data[:_META_BYTES])):
        encoding = _encoding(found[1].decode("ascii"))
        if encoding.startswith("utf-16"):  # wrong: the tag itself was read as ASCII
            encoding = "utf-8"
    if encoding:
        return data.decode(encoding, "replace")
    try:
        # The end of a page that was cut may be the beginning of a character.
        text, num_read = codecs.utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
    is_utf8 = num_read == len(data) or not text.isascii()
    return text if is_utf8 else data.decode("cp1252", "replace")


def _encoding(charset: str) -> str:
    """Return Python's name of a charset; empty if there is none."""
    try:
        name = codecs.lookup(charset.strip(" \"'")).name
    except (LookupError, ValueError):  # a null character
        return ""
    name = _SUPERSETS.get(name, name)
    return name if _CHARSET.fullmatch(name) else ""


def _read(source: str, *, drops_navigation: bool) -> _Reader:
    """Parse a page."""
    reader = _Reader(drops_navigation=drops_navigation)
    reader.feed(source)
    reader.close()
    reader.end_block()
    return reader


def _words(text: str) -> str:
    """Return a text on one line, with single spaces and without control characters."""
    return " ".join(text.translate(_CONTROLS).split())


def _joined(blocks: list[str]) -> str:
    """Join blocks: items of a list and rows of a table by line ends, others by empty lines."""
    pieces: list[str] = []
    before = ""
    for block in blocks:
        mark = block.lstrip()[:2]
        is_next = mark == before and mark in ("- ", "| ")
        pieces += ["\n" if is_next else "\n\n", block]
        before = mark
    return "".join(pieces[1:])


class _Reader(HTMLParser):
    """Collects blocks of text from tags, without building a tree.

    Attributes:
        title: Text of the first `<title>`.
        blocks: Blocks of text, each with whether it is in `<main>` or `<article>`.
    """

    def __init__(self, *, drops_navigation: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.blocks: list[tuple[str, bool]] = []
        self._skipped = _SKIPPED | {"nav"} if drops_navigation else _SKIPPED
        self._pieces: list[str] = []
        self._prefix = ""  # of the block: of a heading or a list item
        self._cells: list[str] | None = None  # of a row of a table
        self._skips = ""  # name of the element that is skipped
        self._depth = 0  # of elements of that name in it
        self._num_main = self._num_pre = self._list_depth = 0
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, or skip an element."""
        if self._skips:
            self._depth += tag == self._skips
            return
        if tag not in _VOID and (tag in self._skipped or _is_hidden(attrs)):
            self._skips, self._depth = tag, 1
            return
        self._change_block(tag)
        self._num_main += tag in ("main", "article")
        self._is_title = tag == "title" and not self.title
        if tag in _HEADINGS:
            self._prefix = _HEADINGS[tag] + " "
        elif tag == "li":
            self._prefix = "  " * min(max(self._list_depth - 1, 0), _DEEPEST_LIST) + "- "
        elif tag in ("ul", "ol"):
            self._list_depth += 1
        elif tag == "tr":
            self._end_row()  # many pages omit </tr>
            self._cells = []
        elif tag == "pre":
            self._num_pre += 1
        elif tag == "br":
            self._pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a block, or the element that is skipped."""
        if self._skips:
            self._depth -= tag == self._skips
            if not self._depth:
                self._skips = ""
            return
        if tag == "pre":
            self._end_pre()
        self._change_block(tag)
        if tag in ("main", "article"):
            self._num_main = max(0, self._num_main - 1)
        elif tag in ("ul", "ol"):
            self._list_depth = max(0, self._list_depth - 1)
        elif tag in ("tr", "table"):
            self._end_row()
        elif tag == "title":
            self._is_title = False

    def handle_data(self, data: str) -> None:
        """Add text."""
        if self._skips:
            return
        if self._is_title:
            self.title += data
            return
        self._pieces.append(data if self._num_pre else re.sub(r"\s+", " ", data))

    def end_block(self) -> None:
        """Add the block that was begun, if it has text."""
        text = "".join(self._pieces)
        self._pieces.clear()
        lines = [_words(line) for line in text.split("\n")]
        text = "\n".join(lines).strip("\n")
        if not text:
            return  # a prefix stays: <li><p>
        if self._cells is not None:
            self._cells.append(_words(text))
        else:
            self._add(self._prefix + text)
        self._prefix = ""

    def _change_block(self, tag: str) -> None:
        """End the block before a tag of a block."""
        if tag in _BLOCKS:
            self.end_block()

    def _end_row(self) -> None:
        """Add a row of a table."""
        cells, self._cells = self._cells, None
        if cells:
            self._add(f"| {' | '.join(cells)} |" if len(cells) > 1 else cells[0])

    def _end_pre(self) -> None:
        """Add preformatted text as a fenced code block."""
        if not self._num_pre:
            return
        self._num_pre -= 1
        code = "".join(self._pieces).translate(_CONTROLS).strip("\n")
        self._pieces.clear()
        longest = max(map(len, re.findall("`{3,}", code)), default=2)
        fence = "`" * (longest + 1)
        if code.strip():
            self._add(f"{fence}\n{code}\n{fence}")

    def _add(self, block: str) -> None:
        """Append a block."""
        self.blocks.append((block, self._num_main > 0))


def _is_hidden(attrs: list[tuple[str, str | None]]) -> bool:
    """Whether readers don't see an element."""
    values = dict(attrs)
    hidden = values.get("hidden", "no") != "no" or values.get("aria-hidden") == "true"
    return hidden or _HIDDEN.search(values.get("style") or "") is not None
