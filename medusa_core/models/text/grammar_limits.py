"""How much a grammar may take, and what is said of one that can't be used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from medusa_core.errors import GrammarError

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

MEMORY_BYTES = 512 << 20  # of the process that compiles a foreign grammar first
MOST_CHARS = 1 << 19
_MOST_ROW_ITEMS = 2_000
_INITIAL_FUEL = 1_000_000  # about 20 ms
_STEP_FUEL = 200_000  # about 15 ms
_MOST_STEP_ITEMS = 20_000
_MOST_LEXER_STATES = 50_000  # up to 2 kB each
_MOST_SYMBOLS = 200_000
# The line of the grammar that was made around a schema says nothing to whoever sent the schema.
_POSITION = re.compile(r"^at \d+\(\d+\): failed to compile JSON schema: ")
_HINT = "Write a simpler or a valid grammar, or ask without one."


def build_matcher(tokenizer: LLTokenizer, text: str) -> LLMatcher:
    """Compile a grammar; without the interpreter lock, so that other threads go on.

    Args:
        tokenizer: Of the target.
        text: Lark, or JSON with `grammars`.

    Raises:
        GrammarError: It isn't valid, or takes too much.
    """
    # Only who asks for a grammar needs the library (tests/gpu/first_card.sh runs without it).
    from llguidance import LLMatcher, LLParserLimits

    limits = LLParserLimits(
        max_items_in_row=_MOST_ROW_ITEMS,
        initial_lexer_fuel=_INITIAL_FUEL,
        step_lexer_fuel=_STEP_FUEL,
        step_max_items=_MOST_STEP_ITEMS,
        max_lexer_states=_MOST_LEXER_STATES,
        max_grammar_size=_MOST_SYMBOLS,
        verbose_errors=False,
    )
    matcher = LLMatcher(tokenizer, text, log_level=0, limits=limits)
    check_matcher(matcher)
    return matcher


def check_size(text: str) -> None:
    """Refuse a grammar that is longer than any sensible one.

    Raises:
        GrammarError: It is.
    """
    if len(text) > MOST_CHARS:
        raise GrammarError(
            f"The grammar has {len(text):,} characters.", f"{MOST_CHARS:,} are possible."
        )


def check_matcher(matcher: LLMatcher) -> None:
    """See that a grammar can be followed further.

    Raises:
        GrammarError: It can't.
    """
    if matcher.is_error():
        raise refused(matcher.get_error())


def refused(reason: str) -> GrammarError:
    """The error for a grammar that can't be used."""
    lines = [line.strip() for line in _POSITION.sub("", reason).strip().splitlines()]
    first = lines[0] if lines else "it has an error"
    # Of a regular expression the first line says only that it is wrong, the last one why.
    causes = [line for line in lines if line.startswith("error: ")]
    first = f"{first} {causes[0].removeprefix('error: ')}" if causes else first
    return GrammarError(f"The grammar can't be used: {first}.", _HINT)
