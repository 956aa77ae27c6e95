"""Medusa and prompt lookup in one tree, under one budget of rows.

Both say what each of their nodes is worth in this step: the heads by what they give their guesses,
the lookup by how often suffixes of that length were right. The most valuable nodes of the merged
trie are verified; a node that both propose is worth what the better of them says, and credits both.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial

from medusa_core.drafters.lookup import Lookup, form_of
from medusa_core.drafters.medusa import heads_and_trees
from medusa_core.drafters.medusa_dynamic import SPEC as DYNAMIC
from medusa_core.drafters.medusa_dynamic import DynamicDrafter, learned_from
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.heads.medusa import MedusaHeads, Ranked
from medusa_core.messages import Odds
from medusa_core.native.merge import NO_GUESSES, Guesses
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree
from medusa_core.types import Proposal


class CompositeDrafter:
    """Merges the heads' tree with what the lookup finds."""

    def __init__(self, heads: MedusaHeads, num_rows: int) -> None:
        self._num_rows = num_rows
        self._medusa = DynamicDrafter(heads, num_rows)
        self._lookup = Lookup(num_rows)

    def begin(self, token_ids: Sequence[int]) -> None:
        self._medusa.begin(token_ids)
        self._lookup.begin(token_ids)

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._num_rows, max_rows)
        ranked = self._medusa.ranked(root_id, rows)
        guesses = NO_GUESSES if ranked is None else _guesses(ranked)
        merged = self._lookup.merge(guesses, rows)
        shape, sources = form_of(merged.form)
        tree = TokenTree(shape, (root_id, *merged.token_ids))
        if ranked is None:
            return Proposal(tree, sources)
        odds = partial(_odds, ranked, merged.places)
        return Proposal(tree, sources, odds, learned_from(ranked))

    def observe(self, observation: Observation) -> None:
        self._medusa.observe(observation)
        self._lookup.learn(observation.token_ids)
        self._lookup.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._medusa.truncate(length)
        self._lookup.truncate(length)


def _guesses(ranked: Ranked) -> Guesses:
    flat = [token_id for best in ranked.token_ids for token_id in best]
    return Guesses(array("i", flat), ranked.worths(), len(ranked.token_ids[0]))


def _odds(ranked: Ranked, places: Sequence[int]) -> Odds:
    """What the heads give each draft node; nothing to what only the lookup found."""
    return Odds(ranked.chances().tobytes(), tuple(places))


def _build(target: Target, num_rows: int) -> CompositeDrafter:
    return CompositeDrafter(heads_and_trees(target)[0], num_rows)


SPEC = DrafterSpec("composite", serves=DYNAMIC.serves, build=_build)
