"""A growing text in which earlier continuations are looked up, and how far these are trusted."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache

from medusa_core.messages import TARGET, TokenSource
from medusa_core.native.merge import Guesses, Merged, merger
from medusa_core.tree.lookup import DEEPEST, LONGEST_SUFFIX
from medusa_core.tree.shape import TreeShape
from medusa_core.types import Form

BOTH = "medusa+ngram"
_NAMES = ("medusa", "ngram", BOTH)  # by their marks
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

    def __init__(self, num_rows: int) -> None:
        """Look up for trees of at most so many rows."""
        self._merge = merger(num_rows)
        self.begin(())

    def begin(self, token_ids: Sequence[int]) -> None:
        """Another text, of which nothing is known."""
        self.text = array("i", token_ids)
        self.trust = array("f", bytes(4 * LONGEST_SUFFIX * DEEPEST))
        self._right = list(_PRIOR)
        self._tried = [1.0] * LONGEST_SUFFIX
        self._suffix = self._offered = 0
        for suffix in range(1, LONGEST_SUFFIX + 1):
            self._weigh(suffix)

    def extend(self, token_ids: Sequence[int]) -> None:
        """The text goes on."""
        self.text.extend(token_ids)

    def truncate(self, length: int) -> None:
        """Forget the text from `length` on."""
        del self.text[length:]

    def merge(self, guesses: Guesses, num_rows: int) -> Merged:
        """What the heads guess and what is found, the most valuable of both."""
        merged = self._merge(guesses, self.text, self.trust, num_rows)
        self._suffix, self._offered = merged.suffix, merged.offered
        return merged

    def learn(self, token_ids: Sequence[int]) -> None:
        """Count whether the first token that was found was right."""
        if suffix := self._suffix:
            self._tried[suffix - 1] += 1 / _PRIOR_WEIGHT
            self._right[suffix - 1] += (self._offered == token_ids[0]) / _PRIOR_WEIGHT
            self._weigh(suffix)
        self._suffix = 0

    def _weigh(self, suffix: int) -> None:
        share = self._right[suffix - 1] / self._tried[suffix - 1]
        for depth in range(1, DEEPEST + 1):
            # A continuation that has held is likelier to hold on: further tokens cost less.
            self.trust[(suffix - 1) * DEEPEST + depth - 1] = share ** ((1 + depth) / 2)


@lru_cache(maxsize=2048)
def form_of(form: bytes) -> Form:
    """What `Merged.form` says: one object per form, so that what follows is computed once."""
    told = memoryview(form).cast("i").tolist()
    shape = TreeShape.from_children(told[: len(told) // 2])
    drafts = zip(told[len(told) // 2 + 1 :], shape.depths[1:], strict=True)
    return Form(shape, (TARGET, *(TokenSource(_NAMES[mark], depth) for mark, depth in drafts)))
