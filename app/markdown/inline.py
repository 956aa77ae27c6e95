"""Inline parser with source positions, on top of markdown-it's rules.

markdown-it gives inline tokens no positions. Its rules, however, all leave `state.pos` at the start
of what they match until they have pushed their tokens, so that a state which notes `pos` at each
push knows where every token began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from app.markdown.bounds import INLINE_BRACKET_WORK, INLINE_CHARS, INLINE_OPENERS
from app.markdown.formula_rule import FORMULA, FORMULA_SOURCE
from app.markdown.model import LINE_BREAK, Run, Runs, TextStyle
from app.markdown.source_map import on_one_line, one_to_one_runs
from app.widgets.qt_text import with_visible_controls
from medusa_core.chats.flanking import scan_delimiters
from medusa_core.chats.html_rule import HTML_BREAK

AT = "at"

_STYLES = {
    "strong": TextStyle.STRONG,
    "em": TextStyle.EMPHASIS,
    "s": TextStyle.STRIKE,
    "sub": TextStyle.SUBSCRIPT,
    "sup": TextStyle.SUPERSCRIPT,
}
_OPENERS = "*_~`<&$\\\n"
_LINKABLE = ("http://", "https://")


class WatchedInlineState(StateInline):
    """Inline state that records in each token's `meta` its start in `src`."""

    def __init__(self, src: str, md: MarkdownIt, env: EnvType, outTokens: list[Token]) -> None:
        super().__init__(src, md, env, outTokens)
        self._pending_at = 0

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        if not canSplitWord:
            return super().scanDelims(start, canSplitWord)
        return scan_delimiters(self.src, start, self.posMax)

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self._pending_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta[AT] = self._pending_at
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        at = self.pos
        token = super().push(ttype, tag, nesting)
        token.meta[AT] = at
        return token


class WatchedInlineParser(ParserInline):
    """Inline parser whose tokens carry positions."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parse an inline text to tokens; `meta["at"]` is the position in `src`.

        A text that is too long, or may have too much markup, becomes one token.
        """
        if _is_too_much(src):
            return list(_lines_as_they_stand(src))
        state = WatchedInlineState(src, md, env, tokens)
        self.tokenize(state)
        _assign_positions(state.tokens)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _is_too_much(src: str) -> bool:
    return (
        len(src) > INLINE_CHARS
        or src.count("[") * len(src) > INLINE_BRACKET_WORK
        or sum(map(src.count, _OPENERS)) > INLINE_OPENERS
    )


def _lines_as_they_stand(src: str) -> Iterator[Token]:
    at = 0
    for line in src.split("\n"):
        if at:
            yield Token("softbreak", "br", 0, meta={AT: at - 1})
        yield Token("text", "", 0, content=line, meta={AT: at})
        at += len(line) + 1


def _assign_positions(tokens: Iterable[Token]) -> None:
    """Set the positions of tokens that were pushed together: delimiters, texts of autolinks."""
    previous_at, length = -1, 0
    for token in tokens:
        at = token.meta[AT]
        if at != previous_at:
            previous_at, length = at, 0
        if token.type == "text":
            token.meta[AT] = at + length
            length += len(token.content)
        elif token.markup == "autolink" and token.nesting > 0:
            length = 1


def runs_from_tokens(tokens: Iterable[Token], src: str, origins: Sequence[int]) -> Runs:
    """Convert inline tokens to runs.

    Args:
        tokens: Tokens of `WatchedInlineParser` for `src`.
        src: The inline text.
        origins: Source position of each of its characters.

    Returns:
        Runs in order, without markup.
    """
    collector = _Collector(src, origins)
    collector.take(tokens, 0)
    return tuple(collector.runs)


class _Collector:
    """Collects runs from inline tokens, with the current style."""

    def __init__(self, src: str, origins: Sequence[int]) -> None:
        self.runs: list[Run] = []
        self._src = src
        self._origins = origins
        self._style = TextStyle.PLAIN
        self._open_tags: Counter[str] = Counter()
        self._href = ""

    def take(self, tokens: Iterable[Token], base: int) -> None:
        """Collect tokens whose positions count from `base`."""
        for token in tokens:
            at = base + token.meta[AT]
            if token.type == "text":
                self._text(token.content, at)
            elif token.type == FORMULA_SOURCE:
                self._source(token.content, at)
            elif token.type == "text_special":
                self._special(token, at)
            elif token.type == "code_inline":
                self._code(token, at)
            elif token.type in ("softbreak", "hardbreak"):
                # Poems, scripts and dialogues of chat models rely on single line ends.
                self._collapsed(LINE_BREAK, at, at + (1 if self._src[at] == "\n" else 2))
            elif token.type == HTML_BREAK:
                self._collapsed(LINE_BREAK, at, at + len(token.markup))
            elif token.type == FORMULA:
                self._formula(token, at)
            elif token.type == "image":
                self._image(token, at)
            elif token.tag == "a":
                self._href = _safe_href(token) if token.nesting > 0 else ""
            elif token.nesting:
                self._toggle(token)

    def _toggle(self, token: Token) -> None:
        self._open_tags[token.tag] += token.nesting
        if self._open_tags[token.tag]:
            self._style |= _STYLES[token.tag]
        else:
            self._style &= ~_STYLES[token.tag]

    def _text(self, text: str, at: int) -> None:
        if not text:
            return
        if self._style & TextStyle.CODE or self._href:
            text = with_visible_controls(text)
        origins = self._origins[at : at + len(text)]
        for run in one_to_one_runs(text, origins, self._style, self._href):
            self._add(run)

    def _source(self, text: str, at: int) -> None:
        """Add a part of the source as a run."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._collapsed(LINE_BREAK, at - 1, at)
            self._text(line, at)
            at += len(line) + 1

    def _special(self, token: Token, at: int) -> None:
        if token.info == "escape":
            # The backslash is markup unless what follows can't be escaped.
            self._text(token.content, at + len(token.markup) - len(token.content))
        else:
            self._collapsed(on_one_line(token.content), at, at + len(token.markup))

    def _collapsed(self, text: str, at: int, end: int) -> None:
        start, stop = self._origins[at], self._origins[end - 1] + 1
        self._add(Run(text, start, stop, self._style, self._href))

    def _code(self, token: Token, at: int) -> None:
        at += len(token.markup)
        inner = self._src[at : at + len(token.content)].replace("\n", " ")
        # One space on each side belongs to the markup.
        at += inner != token.content
        self._style |= TextStyle.CODE
        self._text(token.content, at)
        self._style &= ~TextStyle.CODE

    def _formula(self, token: Token, at: int) -> None:
        self._style |= TextStyle.MATH
        self._collapsed(on_one_line(token.content), at, at + len(token.markup))
        self._style &= ~TextStyle.MATH

    def _image(self, token: Token, at: int) -> None:
        outer, self._style = self._style, self._style | TextStyle.IMAGE
        self.take(token.children or (), at + len("!["))
        self._style = outer

    def _add(self, run: Run) -> None:
        if self.runs and _joins(self.runs[-1], run):
            last = self.runs.pop()
            run = last._replace(text=last.text + run.text, end=run.end)
        self.runs.append(run)


def _joins(left: Run, right: Run) -> bool:
    return (
        left.end == right.start
        and left.style == right.style
        and left.href == right.href
        and left.is_one_to_one
        and right.is_one_to_one
    )


def _safe_href(token: Token) -> str:
    href = str(token.attrs.get("href", ""))
    return href if href.lower().startswith(_LINKABLE) else ""
