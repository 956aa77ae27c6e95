"""Render Markdown as HTML without scripts and external resources."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from medusa_core.chats.flanking import scan_delimiters
from medusa_core.chats.html_rule import HTML_BREAK, html_rule

_MOST_CHARS = 150_000  # limit of the chat, too; longer text is plain
_MAX_NESTING = 100
_BRACKET_WORK = 4_000_000  # brackets make the parser quadratic: characters scanned per paragraph
_LINKS = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
# Dollar signs next to spaces or digits are prices.
_FORMULA = re.compile(
    r"\$\$[^$]{1,4000}\$\$|\\\([^\n]{1,4000}?\\\)|\\\[[^\0]{1,4000}?\\\]"
    r"|\\begin\{([A-Za-z]{1,20}\*?)\}[^\0]{1,4000}?\\end\{\1\}"
    r"|\$(?=[^\s\d$])[^$\n]{0,400}?(?<=\S)\$(?![A-Za-z0-9_])"
)


def rendered(text: str) -> str:
    """Render Markdown; most HTML tags are text, and images are their descriptions.

    Args:
        text: Any text; formulas stay in their source form.
    """
    if len(text) > _MOST_CHARS or any(
        part.count("[") * len(part) > _BRACKET_WORK for part in text.split("\n\n")
    ):
        return plain(text)
    return str(_markdown().render(text))


def plain(text: str) -> str:
    """Return a text as HTML, with its spaces and line breaks."""
    return f'<div class="plain">{escape(text)}</div>\n'


@cache
def _markdown() -> MarkdownIt:
    """Return a CommonMark parser with tables, strikethrough and formulas."""
    options = {"html": False, "maxNesting": _MAX_NESTING}
    markdown = MarkdownIt("zero", renderer_cls=_Renderer)
    markdown.inline = _InlineParser()
    markdown.configure("commonmark", options)
    markdown.enable(["table", "strikethrough"])
    markdown.inline.ruler.before("escape", "formula", _formula_rule)
    markdown.inline.ruler.before("autolink", HTML_BREAK, html_rule)
    return markdown


class _InlineState(StateInline):
    """Inline state with emphasis in scripts without spaces."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803
        """Classify a run of delimiters; markdown-it's rule fails in scripts without spaces."""
        if not canSplitWord:
            return super().scanDelims(start, canSplitWord)
        return scan_delimiters(self.src, start, self.posMax)


class _InlineParser(ParserInline):
    """Parser of inline Markdown that uses `_InlineState`."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parse inline Markdown with our state class."""
        state = _InlineState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _formula_rule(state: StateInline, silent: bool) -> bool:
    """Inline rule that keeps formulas from being parsed as Markdown."""
    if state.src[state.pos] not in "$\\":
        return False
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("text", "", 0).content = found[0]
    state.pos = found.end()
    return True


class _Renderer(RendererHTML):
    """Renderer without external resources."""

    def image(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        """Render the description of an image."""
        return f"<em>{self.renderInlineAsText(tokens[idx].children or [], options, env)}</em>"

    def fence(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        """Render code without a language class."""
        code = tokens[idx].content.removesuffix("\n")  # Qt would show it as an empty line
        return f"<pre><code>{escape(code)}</code></pre>\n"

    code_block = fence

    def link_open(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        """Render links to web and mail addresses; others without a target."""
        href = str(tokens[idx].attrs.get("href", ""))
        return f'<a href="{escape(href)}" rel="noreferrer">' if _LINKS.match(href) else "<a>"
