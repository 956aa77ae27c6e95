"""Parser of answers that are JSON, which are shown as indented code."""

from __future__ import annotations

from app.markdown.model import CodeBlock, Place
from app.markdown.parser import Frozen, MarkdownParser, Parsed
from app.markdown.source_map import clean, one_to_one_runs
from app.widgets.qt_text import with_visible_controls

_INDENT = "  "
_MOST_INDENTS = 24  # deeper values aren't indented further
_MOST_LINES = 1_000  # each is laid out separately
_OPENERS, _CLOSERS = "{[", "}]"


class JsonParser(MarkdownParser):
    """Parser of JSON, complete or not; other text is parsed as Markdown."""

    def parse(self, text: str, start: int = 0, prefix: str = "") -> Parsed:
        if prefix or not text.lstrip().startswith(tuple(_OPENERS)):
            return super().parse(text, start, prefix)
        source = clean(text, start)
        layout = _Layout()
        for char, origin in zip(with_visible_controls(source.text), source.origins, strict=False):
            layout.add(char, origin)
        lines = tuple(tuple(one_to_one_runs("".join(line), at)) for line, at in layout.lines)
        block = CodeBlock(Place(), lines, "json", is_open=not layout.is_complete)
        return Parsed((block,), Frozen(0, start, ""))


class _Layout:
    """Breaks JSON into indented lines.

    Attributes:
        lines: Characters of each line, with the source position of each. Those of an indent have
            the position of the character after it.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[list[str], list[int]]] = [([], [])]
        self._depth = 0
        self._in_string = self._is_escaped = False
        self._breaks = False  # before the next character

    @property
    def is_complete(self) -> bool:
        """Whether all brackets are closed."""
        return self._depth <= 0 and not self._in_string

    def add(self, char: str, origin: int) -> None:
        """Add a character of the source."""
        if self._in_string:
            self._put(char, origin)
            self._in_string = self._is_escaped or char != '"'
            self._is_escaped = char == "\\" and not self._is_escaped
            return
        if char.isspace():
            return
        is_closer = char in _CLOSERS
        if is_closer:
            self._depth -= 1
            # An empty object stays in its line.
            self._breaks = self.lines[-1][0][-1:] not in (["{"], ["["])
        if self._breaks and len(self.lines) < _MOST_LINES:
            self._break(origin)
        self._put(char, origin)
        self._in_string = char == '"'
        self._depth += char in _OPENERS
        self._breaks = char in _OPENERS or char == ","
        if char == ":":
            self._put(" ", origin)

    def _put(self, char: str, origin: int) -> None:
        """Append a character to the last line; a line end, which JSON hasn't, begins another."""
        if char == "\n":
            self.lines.append(([], []))
            return
        chars, origins = self.lines[-1]
        chars.append(char)
        origins.append(origin)

    def _break(self, origin: int) -> None:
        """Begin an indented line."""
        indent = _INDENT * min(max(0, self._depth), _MOST_INDENTS)
        self.lines.append((list(indent), [origin] * len(indent)))
