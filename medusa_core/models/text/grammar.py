"""The grammar of one answer: which tokens are allowed next."""

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
    """Tracks the accepted tokens of an answer, and looks ahead along paths of draft tokens.

    EOS tokens are allowed only where the grammar may end. After them any token is allowed.
    """

    def __init__(self, matcher: LLMatcher, eos_token_ids: Collection[int]) -> None:
        """Begin an answer.

        Args:
            matcher: A new matcher of this answer.
            eos_token_ids: Tokens that end an answer.
        """
        self._matcher = matcher
        self._eos_token_ids = sorted(eos_token_ids)
        self._path: list[int] = []  # consumed draft tokens after the accepted ones
        self._is_over = False

    def advance(self, token_ids: Sequence[int]) -> None:
        """Accept tokens.

        Raises:
            GrammarError: They don't match.
        """
        if self._is_over or not self._move_to(token_ids):
            self._is_over = True
        self._path = []

    def allowed(self, path: Sequence[int], width: int) -> NDArray[np.bool_] | None:
        """Return the mask of allowed tokens.

        Args:
            path: Draft tokens after the accepted ones; they must match.
            width: Size of the vocabulary.

        Returns:
            [width]; None if the answer is over and any token is allowed.

        Raises:
            GrammarError: No token is allowed, or computing the mask takes too long.
        """
        if self._is_over or not self._move_to(path):
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
        """Return whether each token is allowed after a path.

        Args:
            path: As in `allowed`.
            token_ids: Candidate tokens.

        Raises:
            GrammarError: Checking takes too long.
        """
        if self._is_over or not self._move_to(path):
            return [False] * len(token_ids)
        matcher, ends = self._matcher, self._matcher.is_accepting()
        each = [
            ends if token_id in self._eos_token_ids else matcher.validate_tokens([token_id]) == 1
            for token_id in token_ids
        ]
        check_matcher(matcher)
        return each

    def forced(self, path: Sequence[int]) -> Sequence[int]:
        """Return the forced token after a path, if the grammar allows only one continuation.

        Args:
            path: As in `allowed`.

        Returns:
            The token, or all EOS tokens if the answer must end; empty if there is a choice.
        """
        if self._is_over or not self._move_to(path):
            return ()
        if self._matcher.is_stopped():
            return self._eos_token_ids
        return self._matcher.compute_ff_tokens()[:1]

    def _move_to(self, path: Sequence[int]) -> bool:
        """Move the matcher to a path; returns False if the path contains EOS.

        Raises:
            GrammarError: The path doesn't match.
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
