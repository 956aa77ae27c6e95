"""A tree for every step, grown from whatever knows something about it.

Where the heads are sure, their best guess is all that is worth a row; where they waver, several
are. A node is worth the product of the chances on its path; where chance chooses, of how likely the
guesses are with what is known of it. The most valuable nodes are verified, as many as pay: where
little is known, few or none. One that several propose credits all of them.

Source: EAGLE-2 (Li et al. 2024), section 4.1, which grows trees by the drafter's confidence.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import pairwise

from medusa_core.drafters.drafter import NUM_RANKS, Observation
from medusa_core.drafters.lookup import Lookup
from medusa_core.drafters.merge import (
    BY_HEADS,
    BY_LOOKUP,
    BY_PHRASES,
    NO_GUESSES,
    NO_TRUST,
    Guesses,
    Known,
    Merged,
    merger,
)
from medusa_core.heads.medusa import MedusaHeads, Ranked
from medusa_core.messages import MEDUSA, NGRAM, PHRASES, TARGET, Odds, TokenSource
from medusa_core.tree.phrase_table import Phrases
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import Form, Proposal, RowBudget, no_odds

_MOST_RANKS = 32
_NAMES = ((BY_HEADS, MEDUSA), (BY_LOOKUP, NGRAM), (BY_PHRASES, PHRASES))


class GrownDrafter:
    """Grows a tree from the heads' guesses, the text so far and a phrase table, or some of them."""

    def __init__(
        self,
        budget: RowBudget,
        heads: MedusaHeads | None = None,
        lookup: Lookup | None = None,
        phrases: Phrases | None = None,
    ) -> None:
        """Take what may be asked.

        Args:
            budget: How many nodes a tree may have, and what they cost.
            heads: The target's heads.
            lookup: Searches the text so far; phrases need it, too.
            phrases: What the target often says.
        """
        self._most = budget.most
        self._num_ranks = _ranks_within(budget)
        self._heads = heads
        self._num_heads = _heads_within(budget, heads, lookup)
        self._lookup = lookup
        self._asks_rarely = budget.asks_rarely
        both = heads is not None and lookup is not None
        self._sample_every = budget.sample_every if both else 0
        self._samples = 0
        self._merge = merger(budget, phrases)
        self._merged: Merged | None = None
        self._known = Known(NO_GUESSES, array("i"), NO_TRUST)
        self._seen: Observation | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        self._seen = self._merged = None
        self._samples = len(token_ids) // self._sample_every if self._sample_every else 0
        if self._lookup is not None:
            self._lookup.begin(token_ids)
            self._known = Known(NO_GUESSES, self._lookup.text, self._lookup.trust)

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._most, max_rows)
        asks, compares = self._asks() if self._sample_every else (True, False)
        ranked = self._ranked(root_id, rows) if asks else None
        known = self._known
        if ranked is not None:
            known = known._replace(guesses=_guesses(ranked))
        merged = self._merged = self._merge(known, rows)
        shape, sources = form_of(merged.form)
        tree = TokenTree(shape, (root_id, *merged.token_ids))
        if ranked is None:
            return Proposal(tree, sources, no_odds, (), merged.promised)
        odds = partial(_odds, ranked, merged.places)
        learned_from = [best[:NUM_RANKS] for best in ranked.token_ids]
        instead = self._without_heads(root_id, rows) if compares else None
        return Proposal(tree, sources, odds, learned_from, merged.promised, instead)

    def _asks(self) -> tuple[bool, bool]:
        """Whether heads are asked in this step, and whether that is compared with asking none.

        Now and then it is; and now and then it is done the other way round, to see what it costs.
        """
        assert self._lookup is not None
        before, self._samples = self._samples, len(self._lookup.text) // self._sample_every
        if self._samples == before:
            return not self._asks_rarely, False
        compares = self._samples % 2 == 1
        return compares or self._asks_rarely, compares

    def _without_heads(self, root_id: int, rows: int) -> TokenTree:
        merged = self._merge(self._known, rows)
        return TokenTree(form_of(merged.form).shape, (root_id, *merged.token_ids))

    def _ranked(self, root_id: int, rows: int) -> Ranked | None:
        """What the heads guess; None where they have nothing to read, or there is no room."""
        heads, seen = self._heads, self._seen
        if heads is None or seen is None or rows < 2:
            return None
        num_heads = min(self._num_heads, heads.num_heads, rows - 1)
        if num_heads == 0:
            return None
        num_ranks = [min(heads.num_columns, self._num_ranks)] * num_heads
        return heads.ranked(seen.hidden, root_id, num_ranks, chance=seen.chance)

    def observe(self, observation: Observation) -> None:
        self._seen = observation
        if self._lookup is not None:
            if self._merged is not None and self._merged.suffix:
                is_right = self._merged.offered == observation.token_ids[0]
                self._lookup.learn(self._merged.suffix, is_right)
            self._lookup.extend(observation.token_ids)
        self._merged = None

    def truncate(self, length: int) -> None:
        # The state belongs to the row before the root; after a cut it belongs to no row.
        self._seen = self._merged = None
        if self._lookup is not None:
            self._lookup.truncate(length)


def _ranks_within(budget: RowBudget) -> int:
    """How many guesses of a head may come into a tree: the r-th is hardly worth half of 1 / r."""
    least = min((dearer - price for price, dearer in pairwise(budget.prices)), default=0.0)
    most = min(budget.most // 2, _MOST_RANKS)
    return max(NUM_RANKS, min(most, int(0.5 / least)) if least else most)


def _heads_within(budget: RowBudget, heads: MedusaHeads | None, lookup: Lookup | None) -> int:
    """How many heads are asked: those that pay, but one at least where nothing else drafts."""
    if heads is None:
        return 0
    most = heads.num_heads if budget.num_heads is None else budget.num_heads
    return max(most, lookup is None)


def _guesses(ranked: Ranked) -> Guesses:
    flat = [token_id for best in ranked.token_ids for token_id in best]
    return Guesses(array("i", flat), ranked.worths(), len(ranked.token_ids[0]))


def _odds(ranked: Ranked, places: Sequence[int]) -> Odds:
    """What the heads give each draft node; nothing to what only others found."""
    return Odds(ranked.chances().tobytes(), tuple(places))


@lru_cache(maxsize=2048)
def form_of(form: bytes) -> Form:
    """What `Merged.form` says: one object per form, so that what follows is computed once."""
    told = memoryview(form).cast("i").tolist()
    shape = TreeShape.from_children(told[: len(told) // 2])
    drafts = zip(told[len(told) // 2 + 1 :], shape.depths[1:], strict=True)
    return Form(shape, (TARGET, *(_source(marks, depth) for marks, depth in drafts)))


def _source(marks: int, depth: int) -> TokenSource:
    return TokenSource("+".join(name for mark, name in _NAMES if marks & mark), depth)
