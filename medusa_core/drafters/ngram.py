"""Prompt lookup: what followed the same words before may follow them again.

Looks for the longest suffix of the text, prompt and answer, that occurred before, and offers what
came behind it; the latest occurrences come first, and different ones branch.

Source: prompt lookup decoding (Saxena 2023); REST (He et al. 2024), section 3, for the trie.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.drafters.lookup import Lookup
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.messages import TARGET, TokenSource
from medusa_core.target import Target
from medusa_core.tree.grown import grow_tree
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import Proposal


class NgramDrafter:
    """Offers continuations of earlier occurrences as a tree."""

    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows
        self._lookup = Lookup()

    def begin(self, token_ids: Sequence[int]) -> None:
        self._lookup = Lookup()
        self._lookup.extend(token_ids)

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._num_rows, max_rows)
        found = self._lookup.continuations(rows - 1)
        if not found:
            return Proposal(TokenTree(TreeShape.root_only(), (root_id,)), (TARGET,))
        return looked_up_alone(grow_tree(root_id, self._lookup.weighted(found), rows))

    def observe(self, observation: Observation) -> None:
        self._lookup.learn(observation.token_ids)
        self._lookup.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._lookup.truncate(length)


def looked_up_alone(tree: TokenTree) -> Proposal:
    """A tree of nothing but what the lookup found."""
    depths = tree.shape.depths[1:]
    return Proposal(tree, (TARGET, *(TokenSource("ngram", depth) for depth in depths)))


def _serves(_: Target) -> bool:
    return True


def _build(_: Target, num_rows: int) -> NgramDrafter:
    return NgramDrafter(num_rows)


# How often what is offered is right, where something is offered.
_WORTH = ((0.4, 0.08), (0.7, 0.05), (0.75,), (0.8,), (0.8,), (0.8,))

SPEC = DrafterSpec("ngram", serves=_serves, build=_build, worth=lambda _: _WORTH)
