"""Medusa and prompt lookup in one tree, under one budget of rows.

Both say what each of their nodes is worth in this step: the heads by what they give their guesses,
the lookup by how often suffixes of that length were right. The most valuable nodes of the merged
trie are verified; a node that both propose is worth what the better of them says, and credits both.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial

from medusa_core.drafters.lookup import Lookup
from medusa_core.drafters.medusa import heads_and_trees
from medusa_core.drafters.medusa_dynamic import SPEC as DYNAMIC
from medusa_core.drafters.medusa_dynamic import DynamicDrafter, Guess
from medusa_core.drafters.ngram import looked_up_alone
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.heads.medusa import MedusaHeads, Ranked
from medusa_core.messages import TARGET, Odds, TokenSource
from medusa_core.target import Target
from medusa_core.tree.grown import TokenPath, grow_tree
from medusa_core.tree.shape import TokenTree
from medusa_core.types import Proposal

BOTH = "medusa+ngram"


class CompositeDrafter:
    """Merges the heads' tree with what the lookup finds."""

    def __init__(self, heads: MedusaHeads, num_rows: int) -> None:
        self._num_rows = num_rows
        self._medusa = DynamicDrafter(heads, num_rows)
        self._lookup = Lookup()

    def begin(self, token_ids: Sequence[int]) -> None:
        self._medusa.begin(token_ids)
        self._lookup = Lookup()
        self._lookup.extend(token_ids)

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._num_rows, max_rows)
        guess = self._medusa.guess(root_id, rows)
        # Only what could take the place of a node of the heads' tree matters.
        least = 0.0 if guess is None else guess.least
        found = self._lookup.continuations(rows - 1, least)
        if guess is not None and not found:
            return guess.proposal(root_id)
        looked_up = self._lookup.weighted(found, least)
        if guess is not None:
            return _merged(root_id, rows, guess, looked_up)
        return looked_up_alone(grow_tree(root_id, looked_up, rows))

    def observe(self, observation: Observation) -> None:
        self._medusa.observe(observation)
        self._lookup.learn(observation.token_ids)
        self._lookup.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._medusa.truncate(length)
        self._lookup.truncate(length)


def _merged(
    root_id: int, rows: int, guess: Guess, looked_up: Mapping[TokenPath, float]
) -> Proposal:
    """The most valuable nodes of both."""
    drafted = guess.paths
    values = dict(looked_up)
    for path, (_, worth) in drafted.items():
        values[path] = max(values.get(path, 0.0), worth)
    tree = grow_tree(root_id, values, rows)
    paths = _paths(tree)
    sources = (TARGET, *[_source(path, drafted, looked_up) for path in paths])
    odds = partial(_odds, paths, drafted, guess.ranked)
    return Proposal(tree, sources, odds, guess.guesses)


def _paths(tree: TokenTree) -> list[TokenPath]:
    """The tokens from the root down to each draft node."""
    paths: list[TokenPath] = [()]
    for parent, token_id in zip(tree.shape.parents[1:], tree.token_ids[1:], strict=True):
        paths.append((*paths[parent], token_id))
    return paths[1:]


def _source(
    path: TokenPath, drafted: Container[TokenPath], looked_up: Container[TokenPath]
) -> TokenSource:
    """Who proposed a node."""
    name = BOTH if path in drafted and path in looked_up else "medusa"
    return TokenSource(name if path in drafted else "ngram", len(path))


def _odds(
    paths: Sequence[TokenPath], drafted: Mapping[TokenPath, tuple[int, float]], ranked: Ranked
) -> Odds:
    """What the heads give each draft node; nothing to what only the lookup found."""
    places = (drafted[path][0] if path in drafted else -1 for path in paths)
    return Odds(ranked.chances().tobytes(), tuple(places))


def _build(target: Target, num_rows: int) -> CompositeDrafter:
    return CompositeDrafter(heads_and_trees(target)[0], num_rows)


SPEC = DrafterSpec("composite", serves=DYNAMIC.serves, build=_build)
