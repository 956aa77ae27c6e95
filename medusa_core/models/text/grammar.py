"""A grammar that one answer must match: which tokens may follow what is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medusa_core.errors import GrammarError
from medusa_core.models.text.grammar_limits import check_matcher

if TYPE_CHECKING:
    from llguidance import LLMatcher


class Grammar:
    """Follows the decided tokens of an answer, and looks ahead along paths of draft tokens.

    Tokens that end an answer are allowed where the grammar is complete, and nowhere else. Behind
    such a token nothing matters any more.
    """

    def __init__(self, matcher: LLMatcher, eos_token_ids: Collection[int]) -> None:
        """Begin an answer.

        Args:
            matcher: Nothing is consumed yet; it is of this answer alone.
            eos_token_ids: Tokens that end an answer.
        """
        self._matcher = matcher
        self._eos_token_ids = sorted(eos_token_ids)
        self._path: list[int] = []  # what is consumed beyond the decided tokens
        self._is_over = False

    def advance(self, token_ids: Sequence[int]) -> None:
        """Take tokens as decided.

        Raises:
            GrammarError: They don't match.
        """
        if self._is_over or not self._go(token_ids):
            self._is_over = True
        self._path = []

    def allowed(self, path: Sequence[int], width: int) -> NDArray[np.bool_] | None:
        """Which tokens may follow.

        Args:
            path: Draft tokens behind the decided ones; they match.
            width: How many tokens there are.

        Returns:
            [width]; None where the answer is over and any token may follow.

        Raises:
            GrammarError: None may, or the grammar takes too much time here.
        """
        if self._is_over or not self._go(path):
            return None
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        check_matcher(self._matcher)
        allowed = np.unpackbits(bits, count=width, bitorder="little").astype(np.bool_)
        allowed[self._eos_token_ids] = self._matcher.is_accepting()
        if not allowed.any():
            raise GrammarError(
                "No token of this model goes on as the grammar demands.",
                "Change the grammar: it may need a character that the model can't write.",
            )
        return allowed

    def allows(self, path: Sequence[int], token_ids: Sequence[int]) -> list[bool]:
        """Whether each of some tokens may follow a path.

        Args:
            path: As of `allowed`.
            token_ids: Tokens of the target.

        Raises:
            GrammarError: The grammar takes too much time here.
        """
        if self._is_over or not self._go(path):
            return [False] * len(token_ids)
        matcher, ends = self._matcher, self._matcher.is_accepting()
        each = [
            ends if token_id in self._eos_token_ids else matcher.validate_tokens([token_id]) == 1
            for token_id in token_ids
        ]
        check_matcher(matcher)
        return each

    def forced(self, path: Sequence[int]) -> Sequence[int]:
        """The tokens with which the only text begins that may follow a path.

        Args:
            path: As of `allowed`.

        Returns:
            The first token of that text, or those that end an answer where nothing else may
            follow; empty where there is a choice.
        """
        if self._is_over or not self._go(path):
            return ()
        if self._matcher.is_stopped():
            return self._eos_token_ids
        return self._matcher.compute_ff_tokens()[:1]

    def _go(self, path: Sequence[int]) -> bool:
        """Consume a path behind the decided tokens; False where it goes beyond the answer's end.

        Raises:
            GrammarError: It doesn't match.
        """
        if any(token_id in self._eos_token_ids for token_id in path):
            return False
        pairs = zip(self._path, path, strict=False)
        same = next((at for at, (old, new) in enumerate(pairs) if old != new), None)
        same = min(len(self._path), len(path)) if same is None else same
        if same < len(self._path):
            self._matcher.rollback(len(self._path) - same)
            del self._path[same:]
        for token_id in path[same:]:
            if not self._matcher.consume_token(token_id):
                check_matcher(self._matcher)
                raise GrammarError(
                    "What is written doesn't match the grammar.",
                    "Let the answer begin anew, or choose another grammar.",
                )
            self._path.append(token_id)
        return True
