"""Spans: runs that are split by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.markdown.highlight import SyntaxRuns, line_inks
from app.markdown.model import CodeBlock, MarkdownBlock, Run, Runs, TextStyle, runs_of
from app.theme.legend import Mark, mark_of
from app.theme.text_style import Ink
from medusa_core.chats.answer_text import NO_TOKEN, AnswerText


class Span(NamedTuple):
    """Characters of one format that belong to one token, or to none.

    Attributes:
        text: Displayed text.
        style: Style of the text.
        href: Address it links to; may be empty.
        ink: Colour in code.
        mark: Mark of its token; None if no drafter drafted it.
        token: Index of the token; `NO_TOKEN` if none completes it.
    """

    text: str
    style: TextStyle
    href: str
    ink: Ink
    mark: Mark | None
    token: int


Spans = tuple[Span, ...]


def spans_of_block(
    block: MarkdownBlock,
    tokens: AnswerText,
    old: MarkdownBlock | None = None,
    old_lines: Sequence[Spans] = (),
) -> list[Spans]:
    """Return the spans of each line of a block.

    Args:
        block: Any block.
        tokens: The answer, which maps characters to tokens.
        old: An earlier state of the block, or None.
        old_lines: Its spans, which are reused for unchanged lines.

    Returns:
        As many lines as `runs_of` gives.
    """
    lines = runs_of(block)
    if isinstance(block, CodeBlock):
        return _spans_of_code(block, tokens, old, old_lines)
    known = list(zip(runs_of(old), old_lines, strict=True)) if old is not None else []
    return [
        known[i][1] if i < len(known) and known[i][0] == runs else spans_of_line(runs, tokens)
        for i, runs in enumerate(lines)
    ]


def _spans_of_code(
    block: CodeBlock, tokens: AnswerText, old: MarkdownBlock | None, old_lines: Sequence[Spans]
) -> list[Spans]:
    num_same = 0
    # Once code is complete, what stands in later lines may colour earlier ones.
    if isinstance(old, CodeBlock) and old.is_open and block.is_open:
        num_same = _num_same(old.lines, block.lines)
    fresh = block.lines[num_same:]
    texts = tuple("".join(run.text for run in runs) for runs in fresh)
    inks = line_inks(texts, block.language, is_open=block.is_open)
    return [*old_lines[:num_same]] + [
        spans_of_line(runs, tokens, stretches) for runs, stretches in zip(fresh, inks, strict=True)
    ]


def _num_same(old: Sequence[Runs], new: Sequence[Runs]) -> int:
    num_same = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        num_same += 1
    return num_same


def spans_of_line(runs: Runs, tokens: AnswerText, inks: SyntaxRuns = ()) -> Spans:
    """Split the runs of a line where the token or the ink changes.

    Args:
        runs: Runs of one line.
        tokens: The answer, which maps characters to tokens.
        inks: Inks of the line's characters, for code; empty for plain ink.

    Returns:
        Spans in order; neighbours differ.
    """
    spans: list[Span] = []
    for run in runs:
        for text, token, mark in _pieces(run, tokens):
            _append(spans, Span(text, run.style, run.href, Ink.PLAIN, mark, token))
    return (
        _inked(spans, inks)
        if len(inks) > 1 or (inks and inks[0].ink is not Ink.PLAIN)
        else (tuple(spans))
    )


def _pieces(run: Run, tokens: AnswerText) -> list[tuple[str, int, Mark | None]]:
    """Split a run by token: text, token, mark."""
    text, start, end = run.text, run.start, run.end
    if not run.is_one_to_one:
        # One character written in several, such as an entity, is there when its last one is.
        return [(text, *_owner_and_mark(tokens, end - 1))]
    pieces: list[tuple[str, int, Mark | None]] = []
    at = start
    while at < end:
        owner = tokens.owner(at)
        stop = end if owner == NO_TOKEN else min(end, tokens.end(owner))
        pieces.append((text[at - start : stop - start], *_owner_and_mark(tokens, at)))
        at = stop
    return pieces


def _owner_and_mark(tokens: AnswerText, char: int) -> tuple[int, Mark | None]:
    """Return index and mark of the token that completes a character."""
    token = tokens.owner(char)
    return token, None if token == NO_TOKEN else mark_of(tokens.source(token))


def _append(spans: list[Span], span: Span) -> None:
    """Add a span, or extend the last one if only the text differs."""
    if spans and spans[-1][1:] == span[1:]:
        spans[-1] = span._replace(text=spans[-1].text + span.text)
    else:
        spans.append(span)


def _inked(spans: list[Span], inks: SyntaxRuns) -> Spans:
    """Split spans where the ink changes."""
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


def utf16_slice(text: str, start: int, end: int) -> str:
    """Slice a text by positions in UTF-16 code units, which are clamped."""
    units = text.encode("utf-16-le")
    return units[2 * max(0, start) : 2 * max(0, end)].decode("utf-16-le", "replace")


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 code units, by which Qt counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
