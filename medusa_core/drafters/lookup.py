"""A growing text in which earlier continuations are looked up, and how far these are trusted."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from medusa_core.tree.lookup import DEEPEST, LONGEST_SUFFIX

# Before anything is known: how often a continuation goes on to be right, by the suffix's length.
# One counted step weighs as much as one of these.
_PRIOR = (0.15, 0.35, 0.55, 0.7)
_PRIOR_WEIGHT = 4.0


class Lookup:
    """The text so far, and how often what followed suffixes of each length was right.

    Searching the text is quicker than keeping an index: nothing is to be made when an answer begins
    or is cut.

    Attributes:
        text: Its tokens; int32.
        trust: How likely the first 1, 2, ... tokens behind a suffix of 1, 2, ... tokens are all
            right. float32, [LONGEST_SUFFIX, DEEPEST], row after row
    """

    def __init__(self) -> None:
        self.begin(())

    def begin(self, token_ids: Sequence[int]) -> None:
        """Another text, of which nothing is known."""
        self.text = array("i", token_ids)
        self.trust = array("f", bytes(4 * LONGEST_SUFFIX * DEEPEST))
        self._right = list(_PRIOR)
        self._tried = [1.0] * LONGEST_SUFFIX
        for suffix in range(1, LONGEST_SUFFIX + 1):
            self._weigh(suffix)

    def extend(self, token_ids: Sequence[int]) -> None:
        """The text goes on."""
        self.text.extend(token_ids)

    def truncate(self, length: int) -> None:
        """Forget the text from `length` on."""
        del self.text[length:]

    def learn(self, suffix: int, is_right: bool) -> None:
        """Count whether the first token that was found behind a suffix of some length was right."""
        self._tried[suffix - 1] += 1 / _PRIOR_WEIGHT
        self._right[suffix - 1] += is_right / _PRIOR_WEIGHT
        self._weigh(suffix)

    def _weigh(self, suffix: int) -> None:
        share = self._right[suffix - 1] / self._tried[suffix - 1]
        fades, trust = math.sqrt(share), self.trust
        for place in range((suffix - 1) * DEEPEST, suffix * DEEPEST):
            trust[place] = share
            share *= fades  # what has held is likelier to hold on: further tokens cost less
