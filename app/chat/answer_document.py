"""An answer as rendered Markdown whose accepted tokens are marked, while it streams.

What is marked follows from the map that the parser keeps: a rendered character is marked if and
only if the token that completes its source was drafted and accepted.
"""

from __future__ import annotations

import codecs
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from PySide6.QtGui import QTextDocument

from app.markdown.formats import Formats, Marking
from app.markdown.legend import mark_of
from app.markdown.model import Block, CodeBlock
from app.markdown.parser import MarkdownParser
from app.markdown.spans import utf16_length
from app.markdown.style import MarkStyle
from app.markdown.tokens import NO_TOKEN, TokenMap
from app.markdown.writer import DocumentWriter
from medusa_core.messages import TARGET, GenerationDone, StepDone, TokenSource

log = logging.getLogger(__name__)


class MarkedRange(NamedTuple):
    """Characters of the document that show one token, or a part of it.

    Attributes:
        start: Document position of the first character, in UTF-16 units as Qt counts.
        end: Document position after the last one.
        token_index: Index of the token in its answer.
        source: Where the token came from.
    """

    start: int
    end: int
    token_index: int
    source: TokenSource


class AnswerDocument:
    """Fills a document with an answer, step by step.

    Top-level blocks and list items that can't change any more are left alone; only the end of the
    answer is parsed again, and only what differs is written.

    Args:
        document: Where to write; nobody else may change it.
        style: Colours and fonts.
        marking: What to mark.
    """

    def __init__(
        self,
        document: QTextDocument,
        style: MarkStyle,
        marking: Marking = Marking.HEADS,
    ) -> None:
        self._document = document
        self._style = style
        self._marking = marking
        self._tokens = TokenMap()
        self._parser = MarkdownParser()
        self._writer = DocumentWriter(document, self._tokens, self._formats())
        self._received = bytearray()
        self._num_decoded_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._frozen_end = 0
        self._complete_end = 0
        self._prefix = ""

    @property
    def document(self) -> QTextDocument:
        """The document that is filled."""
        return self._document

    @property
    def text(self) -> str:
        """The Markdown shown so far."""
        return self._text

    @property
    def num_tokens(self) -> int:
        """Tokens received so far, shown or not."""
        return len(self._tokens)

    @property
    def marking(self) -> Marking:
        """What is marked."""
        return self._marking

    def append(self, *steps: StepDone) -> None:
        """Show the next steps of the answer; several at once cost about as much as one.

        Args:
            steps: In order, each exactly once.
        """
        num_visible = self._num_decoded_bytes
        for step in steps:
            for piece, source in zip(step.pieces, step.sources, strict=True):
                self._received += piece
                self._tokens.add(piece, source)
            num_visible = max(num_visible, step.num_visible_bytes)
        fresh = bytes(self._received[self._num_decoded_bytes : num_visible])
        self._num_decoded_bytes += len(fresh)
        if text := self._decoder.decode(fresh):
            self._text += text
            self._render()

    def finish(self, done: GenerationDone | None = None) -> None:
        """Show the answer in its final form.

        Args:
            done: The end of the answer; None if it broke off, then what is there is final. An
                answer without steps (from the history) is shown without marks.
        """
        if done is not None and done.text != self._text:
            self._replace_text(done.text)
        self._render(is_final=True)

    def set_marking(self, marking: Marking) -> None:
        """Choose what is marked."""
        if marking is not self._marking:
            self._marking = marking
            self._writer.rewrite(self._formats())

    def restyle(self, style: MarkStyle) -> None:
        """Change colours and fonts; positions stay."""
        if style != self._style:
            self._style = style
            self._writer.rewrite(self._formats())

    def marked_ranges(self) -> tuple[MarkedRange, ...]:
        """Where accepted tokens are marked, in document order; none while marking is off.

        Returns:
            One range for each stretch of a token that stands together: a token with markup inside
            or at the end of a block may have several, a token that shows nothing has none.
        """
        if self._marking is Marking.OFF:
            return ()
        return tuple(found for found in self._ranges() if mark_of(found.source))

    def token_at(self, position: int) -> int:
        """The token whose character stands behind a document position; `NO_TOKEN` if none."""
        for found in self._ranges():
            if found.start <= position < found.end:
                return found.token_index
        return NO_TOKEN

    def ranges_of(self, tokens: range) -> tuple[MarkedRange, ...]:
        """Where some tokens stand, accepted or not, marked or not."""
        return tuple(found for found in self._ranges() if found.token_index in tokens)

    def _ranges(self) -> Iterator[MarkedRange]:
        """Where every token stands, in document order."""
        last: MarkedRange | None = None
        for at, span in self._writer.spans():
            end = at + utf16_length(span.text)
            if last is not None and (last.end, last.token_index) == (at, span.token):
                last = last._replace(end=end)
                continue
            if last is not None:
                yield last
            known = span.token != NO_TOKEN
            source = self._tokens.source(span.token) if known else TARGET
            last = MarkedRange(at, end, span.token, source) if known else None
        if last is not None:
            yield last

    def plain_text(self) -> str:
        """The answer as it is read: without markup, a line for each line."""
        return "\n".join(
            "".join(span.text for span in spans).replace("\u2028", "\n")
            for _, spans in self._writer.lines()
        )

    def _formats(self) -> Formats:
        return Formats(self._style, self._marking)

    def _replace_text(self, text: str) -> None:
        """Show another text than the steps gave; marks stay where both agree."""
        num_common = _num_common_chars(text, self._text)
        if self._text and num_common < len(self._text):
            log.warning("the final text departs from its steps at character %d", num_common)
        if num_common < len(self._text):
            self._writer.clear()
            self._frozen_end = self._complete_end = 0
            self._prefix = ""
        self._tokens.forget_after(num_common)
        self._text = text

    def _render(self, *, is_final: bool = False) -> None:
        end = _end_of_complete_lines(self._text)
        if end > self._complete_end:
            self._complete_end = end
            self._settle(end)
        tail = self._text[self._frozen_end :]
        blocks = self._parser.parse(tail, self._frozen_end, self._prefix).blocks
        self._writer.show_tail(_closed(blocks) if is_final else blocks)

    def _settle(self, end: int) -> None:
        """Freeze what no continuation can change, judged by complete lines alone."""
        complete = self._text[self._frozen_end : end]
        parsed = self._parser.parse(complete, self._frozen_end, self._prefix)
        settled = parsed.settled
        if settled.end == self._frozen_end:
            return
        self._writer.show_tail(parsed.blocks[: settled.num_blocks])
        self._writer.freeze(settled.num_blocks)
        self._frozen_end = settled.end
        self._prefix = settled.prefix


def _num_common_chars(left: str, right: str) -> int:
    """Length of the common beginning of two texts."""
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return i
    return min(len(left), len(right))


def _end_of_complete_lines(text: str) -> int:
    """Position after the last line end; a carriage return at the very end may be half of one."""
    return max(text.rfind("\n"), text.rfind("\r", 0, len(text) - 1)) + 1


def _closed(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The same blocks, with nothing to follow."""
    if blocks and isinstance(last := blocks[-1], CodeBlock):
        return (*blocks[:-1], replace(last, is_open=False))
    return blocks
