"""An answer as rendered Markdown whose accepted tokens are marked, while it streams.

What is marked follows from the map that the parser keeps: a rendered character is marked if and
only if the token that completes its source was drafted and accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from PySide6.QtGui import QTextDocument

from app.markdown.bounds import Bounds
from app.markdown.formats import Formats, Marking
from app.markdown.reader import Reader
from app.markdown.selection import Copied, Selection, copied, select
from app.markdown.spans import utf16_length
from app.markdown.tokens import NO_TOKEN, TokenMap
from app.markdown.writer import DocumentWriter
from app.theme.legend import mark_of
from app.theme.text_style import MarkStyle
from medusa_core.chats.reasoning import (
    AnswerSpan,
    AnswerSpans,
    SpanReader,
    VisiblePiece,
    VisiblePieces,
    answer_text,
    reasoning_text,
)
from medusa_core.messages import (
    TARGET,
    GenerationDone,
    ReasoningFormat,
    StepDone,
    TokenSource,
)

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
    answer is parsed again, and only what differs is written. A call shows so much as one turn of
    the event loop has time for; while `is_behind`, `show_more` shows the rest in later turns.

    Args:
        document: Where to write; nobody else may change it.
        style: Colours and fonts.
        marking: What to mark.
        bounds: How much is formatted, and how much shown in one turn.
        shows_reasoning: Show the reasoning; else the answer without it.
    """

    def __init__(
        self,
        document: QTextDocument,
        style: MarkStyle,
        marking: Marking = Marking.HEADS,
        bounds: Bounds | None = None,
        shows_reasoning: bool = False,
    ) -> None:
        self._document = document
        self._style = style
        self._marking = marking
        self._tokens = TokenMap()
        self._writer = DocumentWriter(document, self._tokens, self._formats())
        self._pieces = VisiblePieces()
        self._bounds = bounds or Bounds()
        self._reader = Reader(self._writer, bounds=self._bounds)
        self._shows_reasoning = shows_reasoning
        self._text = ""
        self._start = 0
        self._spans = SpanReader()
        self._known_spans: AnswerSpans | None = None

    @property
    def document(self) -> QTextDocument:
        """The document that is filled."""
        return self._document

    @property
    def text(self) -> str:
        """The Markdown that came so far, shown or not."""
        return self._text

    @property
    def shown_text(self) -> str:
        """The Markdown of the part that is shown here."""
        if self._shows_reasoning:
            return reasoning_text(self._text, self.spans)
        return answer_text(self._text, self.spans)

    @property
    def spans(self) -> Sequence[AnswerSpan]:
        """Which of the text is reasoning, as far as that is decided."""
        return self._spans.spans if self._known_spans is None else self._known_spans

    @property
    def is_reasoning(self) -> bool:
        """Whether the reasoning is still under way."""
        return self._known_spans is None and self._spans.is_reasoning

    @property
    def reasoning_end(self) -> int:
        """Where the reasoning ends; 0 without any."""
        return max((one.end for one in self.spans if one.is_reasoning), default=0)

    def selected(self, selection: Selection) -> Copied:
        """What is copied of a selection; formulas as they were written."""
        found = (
            select(lines, block, selection, self._text) for block, lines in self._writer.blocks()
        )
        return copied([one for one in found if one is not None])

    @property
    def is_behind(self) -> bool:
        """Whether not all of the text is shown yet."""
        return self._reader.is_behind

    @property
    def is_plain_at_end(self) -> bool:
        """Whether the end is shown as plain text, as there is too much to format."""
        return self._reader.plain_start is not None

    @property
    def num_tokens(self) -> int:
        """Tokens received so far, shown or not."""
        return len(self._tokens)

    def num_tokens_before(self, char: int) -> int:
        """How many tokens the text up to a position takes."""
        owner = self._tokens.owner(max(0, char - 1))
        return len(self._tokens) if owner == NO_TOKEN else owner + 1

    @property
    def marking(self) -> Marking:
        """What is marked."""
        return self._marking

    def expect_reasoning(self, tags: ReasoningFormat, begins_inside: bool) -> None:
        """Say how the model sets reasoning apart, before anything of the answer comes.

        Args:
            tags: The model's format.
            begins_inside: The prompt opened the reasoning.
        """
        self._spans, self._pieces = SpanReader(tags, begins_inside), VisiblePieces(tags)

    def use_spans(self, spans: AnswerSpans) -> None:
        """Take what is known of an answer that is complete, instead of looking for it."""
        self._known_spans = spans

    def append(self, *steps: StepDone) -> None:
        """Show the next steps of the answer; several at once cost about as much as one.

        Args:
            steps: In order, each exactly once.
        """
        new: list[VisiblePiece] = []
        for step in steps:
            for piece, source in zip(step.pieces, step.sources, strict=True):
                self._tokens.add(piece, source)
            new += self._pieces.add(step)
        self._add(new)
        if new:
            self._read_part()

    def finish(self, done: GenerationDone | None = None) -> None:
        """Show the answer in its final form.

        Args:
            done: The end of the answer; None if it broke off, then what is there is final. An
                answer without steps (from the history) is shown without marks.
        """
        self._add(self._pieces.finish())
        if done is not None and done.text != self.text:
            self._replace_text(done.text)
        self._end()

    def show_text(self, text: str) -> None:
        """Show a text of which no steps are known, without marks."""
        self._text += text
        self._spans.add_text(text)
        self._end()

    def show_more(self) -> None:
        """Show one turn's share of what is not shown yet."""
        self._reader.read_on()

    def set_marking(self, marking: Marking) -> None:
        """Choose what is marked."""
        if marking is not self._marking:
            self._marking = marking
            self._rewrite()

    def restyle(self, style: MarkStyle) -> None:
        """Change colours and fonts; positions stay."""
        if style != self._style:
            self._style = style
            self._rewrite()

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
        """The token of the character after a document position; `NO_TOKEN` if none."""
        for found in self._ranges():
            if found.start <= position < found.end:
                return found.token_index
        return NO_TOKEN

    def ranges_of(self, tokens: range) -> tuple[MarkedRange, ...]:
        """Return the character ranges of some tokens, with their marks."""
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

    def _formats(self) -> Formats:
        return Formats(self._style, self._marking)

    def _rewrite(self) -> None:
        if len(self.text) <= self._bounds.rewrite:
            self._writer.rewrite(self._formats())
            return
        self._writer.clear(self._formats())
        self._reader.restart(self._reader.text, self._start)
        self._reader.read_on()

    def _replace_text(self, text: str) -> None:
        """Show another text than the steps gave; marks stay where both agree."""
        num_common = _num_common_chars(text, self._text)
        self._tokens.forget_after(num_common)
        if num_common < len(self._text):
            log.warning("the final text departs from its steps at character %d", num_common)
            self._begin_at(0)
            self._spans, num_common = SpanReader(), 0
        self._spans.add_text(text[num_common:])
        self._text = text

    def _add(self, pieces: Iterable[VisiblePiece]) -> None:
        texts = []
        for piece in pieces:
            texts.append(piece.text)
            self._spans.add(piece)
        self._text += "".join(texts)  # once: each time copies all of it

    def _end(self) -> None:
        """Nothing more comes."""
        self._spans.finish()
        self._read_part()
        self._reader.complete()
        self._reader.read_on()

    def _read_part(self) -> None:
        """Read what is to be shown of the text as it is now."""
        shown = [one for one in self.spans if one.is_reasoning is self._shows_reasoning]
        if not shown:
            return
        if shown[0].start != self._start or shown[-1].end < len(self._reader.text):
            self._begin_at(shown[0].start)
        at = len(self._reader.text)
        for span in shown:
            if span.end > at:
                # What isn't shown between two parts is empty lines: places in the text stay.
                hidden = "\n" * max(0, span.start - at)
                self._reader.add(hidden + self._text[max(at, span.start) : span.end])
                at = span.end
        self._reader.read_on()

    def _begin_at(self, start: int) -> None:
        self._writer.clear(self._formats())
        self._reader.restart(self._text[:start], start)
        self._start = start


def _num_common_chars(left: str, right: str) -> int:
    """Length of the common beginning of two texts."""
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return i
    return min(len(left), len(right))
