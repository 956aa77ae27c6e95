"""An answer as rendered Markdown whose accepted tokens are marked, while it streams.

Marks use the parser's source map: a rendered character is marked if and only if the token that
completes its source was drafted and accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from PySide6.QtGui import QTextDocument

from app.markdown.bounds import Bounds
from app.markdown.formats import Formats
from app.markdown.json_parser import JsonParser
from app.markdown.parser import MarkdownParser
from app.markdown.reader import Reader
from app.markdown.selection import Copied, Selection, copied, select
from app.markdown.spans import utf16_length
from app.markdown.writer import DocumentWriter
from app.theme.legend import mark_of
from app.theme.text_style import Marking, MarkStyle
from medusa_core.chats.answer_text import NO_TOKEN, AnswerText, PartText
from medusa_core.messages import TARGET, TokenSource


class MarkedRange(NamedTuple):
    """Characters of the document that show one token, or a part of it.

    Attributes:
        start: Document position of the first character, in UTF-16 units as Qt counts.
        end: Document position after the last one.
        token_index: Index of the token in its answer.
        source: Draft source of the token.
    """

    start: int
    end: int
    token_index: int
    source: TokenSource


class AnswerDocument:
    """Renders one part of a growing answer into a document.

    Top-level blocks and list items that can't change any more are left alone; only the end of the
    answer is parsed again, and only differences are written. A call shows a limited amount of
    text; while `is_behind`, call `show_more` in later iterations of the event loop.

    Args:
        content: The answer.
        document: Document to fill; only this object may change it.
        style: Colours and fonts.
        bounds: Limits of formatting, in total and per call.
        shows_reasoning: Show the reasoning; else the answer without it.
        is_json: Show JSON as indented code.
        passages: Numbers of the passages that the answer may cite, which may be added before its
            text.

    Attributes:
        document: The document that is filled.
        style: Colours and fonts, and what is marked.
        has_words: Whether the part has more than white space.
    """

    def __init__(
        self,
        content: AnswerText,
        document: QTextDocument,
        style: MarkStyle,
        bounds: Bounds | None = None,
        shows_reasoning: bool = False,
        *,
        is_json: bool = False,
        passages: Collection[int] = (),
    ) -> None:
        self.document = document
        self.has_words = False
        self._content = content
        self._part = PartText(content, is_reasoning=shows_reasoning)
        self.style = style
        self._writer = DocumentWriter(document, content, Formats(self.style))
        self._bounds = bounds or Bounds()
        parser = JsonParser() if is_json else MarkdownParser(passages)
        self._reader = Reader(self._writer, self._part, parser, self._bounds)
        self._start = self._num_read = self._revision = 0

    @property
    def text(self) -> str:
        """The Markdown of the part."""
        return self._part.text

    def selected(self, selection: Selection) -> Copied:
        """Return a selection for the clipboard, with formulas as LaTeX."""
        source = self._content.text
        found = (select(lines, block, selection, source) for block, lines in self._writer.blocks())
        return copied([one for one in found if one is not None])

    @property
    def is_behind(self) -> bool:
        """Whether some text isn't shown yet."""
        return self._reader.is_behind

    @property
    def is_plain_at_end(self) -> bool:
        """Whether the end is shown as plain text, as there is too much to format."""
        return self._reader.plain_start is not None

    def refresh(self) -> str:
        """Show added text; return the added text of this part."""
        if (self._part.start, self._content.revision) != (self._start, self._revision):
            self._start, self._revision = self._part.start, self._content.revision
            self._num_read = self._start
            self._writer.clear(Formats(self.style))
            self._reader.restart(self._start)
        added = self._part[self._num_read :]
        self._num_read += len(added)
        self.has_words = self.has_words or bool(added.strip())
        if self._content.is_finished:
            self._reader.complete()
        self._reader.read_on()
        return added

    def show_more(self) -> None:
        """Show more of the text, up to the limit of one call."""
        self._reader.read_on()

    def restyle(self, style: MarkStyle) -> None:
        """Change colours, fonts and marks; positions don't change."""
        if style == self.style:
            return
        self.style = style
        if len(self._part) - self._start <= self._bounds.rewrite:
            self._writer.rewrite(Formats(style))
            return
        self._writer.clear(Formats(style))
        self._reader.restart(self._start)
        self._reader.read_on()

    def marked_ranges(self) -> tuple[MarkedRange, ...]:
        """Return the ranges of accepted tokens in document order; none if marking is off.

        Returns:
            One range for each contiguous part of a token: a token with markup inside
            or at the end of a block may have several, a token that shows nothing has none.
        """
        if self.style.marking is Marking.OFF:
            return ()
        return tuple(found for found in self._ranges() if mark_of(found.source))

    def token_at(self, position: int) -> int:
        """The token of the character after a document position; `NO_TOKEN` if none."""
        for found in self._ranges():
            if found.start <= position < found.end:
                return found.token_index
        return NO_TOKEN

    def ranges_of(self, tokens: range) -> tuple[MarkedRange, ...]:
        """Return the character ranges of some tokens, with their marks."""
        return tuple(found for found in self._ranges() if found.token_index in tokens)

    def _ranges(self) -> Iterator[MarkedRange]:
        """Yield the ranges of all tokens in document order."""
        last: MarkedRange | None = None
        for at, span in self._writer.spans():
            end = at + utf16_length(span.text)
            if last is not None and (last.end, last.token_index) == (at, span.token):
                last = last._replace(end=end)
                continue
            if last is not None:
                yield last
            known = span.token != NO_TOKEN
            source = self._content.source(span.token) if known else TARGET
            last = MarkedRange(at, end, span.token, source) if known else None
        if last is not None:
            yield last
