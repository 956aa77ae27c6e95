"""Which token each character of an answer belongs to."""

from __future__ import annotations

import codecs
from bisect import bisect_right
from typing import NamedTuple

from app.markdown.highlight import Stretches
from app.markdown.model import Runs, TextStyle
from app.markdown.style import Ink
from medusa_core.messages import TARGET, TokenSource

NO_TOKEN = -1


class Span(NamedTuple):
    """Characters of one look that belong to one accepted token, or to none.

    Attributes:
        text: What is shown.
        style: How it looks.
        href: Address it links to; may be empty.
        ink: Colour in code.
        head: Head that drafted it, 1-based; 0 if no drafter did.
        token: Index of the accepted token; `NO_TOKEN` if no drafter gave it.
    """

    text: str
    style: TextStyle
    href: str
    ink: Ink
    head: int
    token: int


Spans = tuple[Span, ...]


class TokenMap:
    """Tokens of an answer by the characters that they complete."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._sources: list[TokenSource] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._num_chars = 0

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, piece: bytes, source: TokenSource) -> None:
        """Add the next token with the bytes that it completes."""
        self._num_chars += len(self._decoder.decode(piece))
        self._ends.append(self._num_chars)
        self._sources.append(source)

    def source(self, token: int) -> TokenSource:
        """Where a token came from."""
        return self._sources[token]

    def forget_after(self, num_chars: int) -> None:
        """Give up the characters from a position on: they are no longer what the tokens said."""
        self._ends = [min(end, num_chars) for end in self._ends]
        self._num_chars = num_chars

    def owner(self, char: int) -> int:
        """Index of the token that completes a character; `NO_TOKEN` if there is none."""
        token = bisect_right(self._ends, char)
        return token if token < len(self._ends) else NO_TOKEN

    def accepted_owner(self, char: int) -> tuple[int, int]:
        """Index and head of the accepted token that completes a character, if it is one."""
        token = self.owner(char)
        if token == NO_TOKEN or self._sources[token].drafter == TARGET.drafter:
            return NO_TOKEN, 0
        return token, self._sources[token].head

    def end(self, token: int) -> int:
        """Position after the last character that a token completes."""
        return self._ends[token]


def spans_of_line(runs: Runs, tokens: TokenMap, inks: Stretches = ()) -> Spans:
    """Cut the runs of a line where the token, the head or the ink changes.

    Args:
        runs: Runs of one line.
        tokens: Tokens of the answer.
        inks: Inks of the line's characters, for code; empty for plain ink.

    Returns:
        Spans in order; neighbours differ.
    """
    spans: list[Span] = []
    for run in runs:
        for text, token, head in _pieces(run.text, run.start, run.end, tokens):
            _append(spans, Span(text, run.style, run.href, Ink.PLAIN, head, token))
    return (
        _inked(spans, inks)
        if len(inks) > 1 or (inks and inks[0].ink is not Ink.PLAIN)
        else (tuple(spans))
    )


def _pieces(text: str, start: int, end: int, tokens: TokenMap) -> list[tuple[str, int, int]]:
    """Pieces of a run by owner: text, accepted token, head."""
    if len(text) != end - start:
        # One character written in several, such as an entity, is there when its last one is.
        return [(text, *tokens.accepted_owner(end - 1))]
    pieces: list[tuple[str, int, int]] = []
    at = start
    while at < end:
        owner = tokens.owner(at)
        stop = end if owner == NO_TOKEN else min(end, tokens.end(owner))
        pieces.append((text[at - start : stop - start], *tokens.accepted_owner(at)))
        at = stop
    return pieces


def _append(spans: list[Span], span: Span) -> None:
    """Add a span, or its text to the last one if they differ in nothing else."""
    if spans and spans[-1][1:] == span[1:]:
        spans[-1] = span._replace(text=spans[-1].text + span.text)
    else:
        spans.append(span)


def _inked(spans: list[Span], inks: Stretches) -> Spans:
    """Cut spans once more where the ink changes."""
    result: list[Span] = []
    stretches = iter(inks)
    left, ink = 0, Ink.PLAIN
    for span in spans:
        at = 0
        while at < len(span.text):
            if left == 0:
                left, ink = next(stretches)
            taken = min(left, len(span.text) - at)
            _append(result, span._replace(text=span.text[at : at + taken], ink=ink))
            at, left = at + taken, left - taken
    return tuple(result)


def utf16_length(text: str) -> int:
    """Length of a text in UTF-16 code units, which Qt counts positions in."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
