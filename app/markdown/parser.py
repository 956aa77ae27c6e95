"""Parses Markdown to flat blocks with source positions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import EnvType

from app.markdown.block import LINE_STARTS, WatchedBlockParser
from app.markdown.flatten import Flattener
from app.markdown.formula_rule import FORMULA, formula_block_rule, formula_rule
from app.markdown.inline import WatchedInlineParser
from app.markdown.model import CodeBlock, MarkdownBlock
from app.markdown.source_map import clean
from medusa_core.chats.html_rule import HTML_BREAK, html_rule

_MAX_NESTING = 100
_MAX_LIST_NUMBER = 999_999_999


class WatchedMarkdown(MarkdownIt):
    """CommonMark parser with tables and strikethrough, and source positions.

    HTML is text, except line breaks, subscripts and superscripts. Link reference definitions are
    text too: a definition at the end of an answer would change paragraphs far above it.
    """

    def __init__(self) -> None:
        super().__init__("zero")
        self.inline = WatchedInlineParser()
        self.block = WatchedBlockParser()
        self.configure("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
        self.enable(["table", "strikethrough"])
        # Joining fragments would lose where all but the last of them came from.
        self.disable(["html_block", "html_inline", "reference", "fragments_join"])
        self.inline.ruler.before("escape", FORMULA, formula_rule)
        self.inline.ruler.before("autolink", HTML_BREAK, html_rule)
        self.block.ruler.before("table", FORMULA, formula_block_rule, {"alt": ["paragraph"]})
        # While a table or a quotation grows, only its last text is new.
        self.inline_tokens = lru_cache(maxsize=128)(self._inline_tokens)

    def _inline_tokens(self, content: str) -> tuple[Token, ...]:
        """Return the tokens of an inline text with positions; must not be changed."""
        return tuple(self.inline.parse(content, self, {}, []))

    def validateLink(self, url: str) -> bool:
        """Accept every target as a link; only safe ones can be followed."""
        return True

    def normalizeLink(self, url: str) -> str:
        """Leave targets as they are."""
        return url

    def normalizeLinkText(self, link: str) -> str:
        """Leave the text of autolinks as it is: rendered characters are source characters."""
        return link


@dataclass(frozen=True, slots=True)
class Frozen:
    """The part of a text that later text can't change.

    Attributes:
        num_blocks: Number of its blocks.
        end: Source position of its end, where the next block or list item begins.
        prefix: Text that makes a parser treat the rest as if it followed this part:
            an empty list item, whose block is dropped. Empty outside lists.
    """

    num_blocks: int
    end: int
    prefix: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed text.

    Attributes:
        blocks: Its flat blocks.
        frozen: The part that won't change, if all lines were complete.
    """

    blocks: tuple[MarkdownBlock, ...]
    frozen: Frozen


class MarkdownParser:
    """Parser of whole answers, or of their ends.

    Args:
        passages: Numbers of the passages that the text may cite; without any, it cites none.
    """

    def __init__(self, passages: Collection[int] = ()) -> None:
        self._markdown = WatchedMarkdown()
        self._passages = passages

    def parse(self, text: str, start: int = 0, prefix: str = "") -> Parsed:
        """Parse a text.

        Args:
            text: Markdown.
            start: Position of its first character in the whole answer.
            prefix: `Frozen.prefix` of the part before it.

        Returns:
            Blocks with positions in the whole answer. The last block is open if it is code that
            may continue.
        """
        source = clean(prefix + text, start - len(prefix))
        env: EnvType = {}
        tokens = self._markdown.block.parse(source.text, self._markdown, env, []) or []
        cut = _last_start(tokens)
        flattener = Flattener(self._markdown.inline_tokens, source.origins, self._passages)
        num_frozen = 0
        for index, token in enumerate(tokens):
            if index == cut:
                num_frozen = len(flattener.blocks)
            flattener.take(token)
        end = source.origins[_line_start(tokens, cut, env)]
        num_dropped = 1 if prefix else 0
        return Parsed(
            _only_last_open(flattener.blocks[num_dropped:]),
            Frozen(max(0, num_frozen - num_dropped), max(start, end), _carry(tokens, cut)),
        )


def _last_start(tokens: list[Token]) -> int:
    """Return the index of the token that starts the last top-level block or list item."""
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.level == 1 and token.type == "list_item_open" and _can_carry(tokens, index):
            return index
        if token.level == 0 and token.nesting >= 0:
            return index
    return 0


def _previous_items(tokens: list[Token], item: int) -> tuple[Token, int]:
    """Return the top-level list around an item, and the number of items before it."""
    num_items = 0
    for token in reversed(tokens[:item]):
        if token.level == 0:
            return token, num_items
        num_items += token.level == 1 and token.type == "list_item_open"
    raise AssertionError("an item stands in a list")


def _can_carry(tokens: list[Token], item: int) -> bool:
    opener, num_items = _previous_items(tokens, item)
    # A number of more than nine digits would not be read back.
    return num_items > 0 and int(opener.attrs.get("start", 1)) + num_items <= _MAX_LIST_NUMBER


def _carry(tokens: list[Token], cut: int) -> str:
    """Return the `Frozen.prefix` for a cut at a token."""
    if not tokens or tokens[cut].type != "list_item_open":
        return ""
    opener, num_items = _previous_items(tokens, cut)
    if opener.type == "bullet_list_open":
        return f"{opener.markup}\n"
    return f"{int(opener.attrs.get('start', 1)) + num_items - 1}{opener.markup}\n"


def _line_start(tokens: list[Token], cut: int, env: EnvType) -> int:
    """Return the position in the parsed text of the line where a token starts."""
    line_map = tokens[cut].map if tokens else None
    return int(env[LINE_STARTS][line_map[0]]) if line_map else 0


def _only_last_open(blocks: list[MarkdownBlock]) -> tuple[MarkdownBlock, ...]:
    """Mark all code except the last block as closed."""
    last = len(blocks) - 1
    return tuple(
        replace(block, is_open=False)
        if i < last and isinstance(block, CodeBlock) and block.is_open
        else block
        for i, block in enumerate(blocks)
    )
