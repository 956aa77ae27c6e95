"""Limits of grammars, and the errors of those that exceed them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from medusa_core.errors import GrammarError
from medusa_core.i18n import tr

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

MAX_GRAMMAR_CHARS = 1 << 19
_MAX_ROW_ITEMS = 2_000
_INITIAL_FUEL = 1_000_000  # about 20 ms
_STEP_FUEL = 200_000  # about 15 ms
_MAX_STEP_ITEMS = 20_000
_MAX_LEXER_STATES = 50_000  # up to 2 kB each
_MAX_SYMBOLS = 200_000
# The grammar that wraps a schema is ours, so its line numbers mean nothing to the user.
_POSITION = re.compile(r"^at \d+\(\d+\): failed to compile JSON schema: ")
_HINT = tr("Write a simpler or a valid grammar, or ask without one.")


def build_matcher(tokenizer: LLTokenizer, text: str) -> LLMatcher:
    """Compile a grammar without holding the interpreter lock.

    Args:
        tokenizer: Vocabulary of the target.
        text: Lark, or JSON with `grammars`.

    Raises:
        GrammarError: It is invalid, or exceeds a limit.
    """
    # Imported here, as only grammars need the library (tests/gpu/first_card.sh runs without it).
    from llguidance import LLMatcher, LLParserLimits

    limits = LLParserLimits(
        max_items_in_row=_MAX_ROW_ITEMS,
        initial_lexer_fuel=_INITIAL_FUEL,
        step_lexer_fuel=_STEP_FUEL,
        step_max_items=_MAX_STEP_ITEMS,
        max_lexer_states=_MAX_LEXER_STATES,
        max_grammar_size=_MAX_SYMBOLS,
        verbose_errors=False,
    )
    matcher = LLMatcher(tokenizer, text, log_level=0, limits=limits)
    check_matcher(matcher)
    return matcher


def check_size(text: str) -> None:
    """Check the length of a grammar.

    Raises:
        GrammarError: It is too long.
    """
    if len(text) > MAX_GRAMMAR_CHARS:
        raise GrammarError(
            tr("The grammar has {0:,} characters.", len(text)),
            tr("{0:,} are possible.", MAX_GRAMMAR_CHARS),
        )


def check_matcher(matcher: LLMatcher) -> None:
    """Check that a matcher hasn't failed.

    Raises:
        GrammarError: It has failed.
    """
    if matcher.is_error():
        raise refused(matcher.get_error())


def refused(reason: str) -> GrammarError:
    """Make the error for a grammar that can't be used."""
    lines = [line.strip() for line in _POSITION.sub("", reason).strip().splitlines()]
    first = lines[0] if lines else "it has an error"
    # For a regular expression the first line only says that it is invalid, the last one why.
    causes = [line for line in lines if line.startswith("error: ")]
    first = f"{first} {causes[0].removeprefix('error: ')}" if causes else first
    return GrammarError(tr("The grammar can't be used: {0}.", first), _HINT)
