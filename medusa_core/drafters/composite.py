"""Medusa and prompt lookup in one tree, under one budget of rows.

Both say what each of their nodes is worth: the heads by the accuracies of their ranks, the lookup
by how often suffixes of that length were right. The most valuable nodes of the merged trie are
verified; a node that both propose is worth what the better of them says, and credits both.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial

from torch import Tensor

from medusa_core.drafters.lookup import Lookup
from medusa_core.drafters.medusa import MedusaDrafter, heads_and_trees
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.engine.learning import NUM_RANKS
from medusa_core.heads.medusa import MedusaHeads, Ranked
from medusa_core.messages import TARGET, Odds, TokenSource
from medusa_core.target import Target
from medusa_core.tree.grown import TokenPath, grow_tree
from medusa_core.tree.presets import TreeTable
from medusa_core.tree.shape import Path, TokenTree, TreeShape
from medusa_core.types import Chance, Proposal

BOTH = "medusa+ngram"


class CompositeDrafter:
    """Merges the heads' tree with what the lookup finds."""

    def __init__(self, heads: MedusaHeads, shape: TreeShape, values: dict[Path, float]) -> None:
        """Merge into this tree.

        Args:
            heads: The heads.
            shape: Their tree, as large as the budget.
            values: The chance of every rank path in it.
        """
        self._heads = heads
        self._shape = shape
        self._values = values
        self._worst = min(values.values(), default=0.0)
        self._medusa = MedusaDrafter(heads, shape)
        self._lookup = Lookup()
        self._hidden: Tensor | None = None
        self._chance: Chance | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        self._hidden = None
        self._medusa.begin(token_ids)
        self._lookup = Lookup()
        self._lookup.extend(token_ids)

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._shape.num_nodes, max_rows)
        found = self._lookup.continuations(rows - 1)
        if self._hidden is None:
            looked_up = self._lookup.weighted(found)
        else:  # what could take the place of a node of the heads' tree
            looked_up = self._lookup.weighted(found, self._worst)
            if not looked_up:
                return self._medusa.propose(root_id, max_rows)
        ranked, drafted = self._drafted(root_id, rows)
        values = dict(looked_up)
        for path, ranks in drafted.items():
            values[path] = max(values.get(path, 0.0), self._values[ranks])
        tree = grow_tree(root_id, values, rows)
        paths = _paths(tree)
        sources = (TARGET, *[_source(path, drafted, looked_up) for path in paths])
        if ranked is None:
            return Proposal(tree, sources)
        odds = partial(_odds, paths, drafted, ranked)
        return Proposal(tree, sources, odds, ranked.token_ids)

    def observe(self, observation: Observation) -> None:
        self._hidden, self._chance = observation.hidden, observation.chance
        self._medusa.observe(observation)
        self._lookup.learn(observation.token_ids)
        self._lookup.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._hidden = None
        self._medusa.truncate(length)
        self._lookup.truncate(length)

    def _drafted(self, root_id: int, rows: int) -> tuple[Ranked | None, dict[TokenPath, Path]]:
        """What the heads guess, and the ranks along every path of tokens in their tree."""
        shape = self._shape.first_rows(rows)
        if self._hidden is None or shape.num_nodes == 1:
            return None, {}
        ranked = self._heads.ranked(self._hidden, root_id, shape.num_ranks, NUM_RANKS, self._chance)
        best = ranked.token_ids
        drafted = {
            tuple([best[depth][rank] for depth, rank in enumerate(path)]): path
            for path in shape.paths[1:]
        }
        return ranked, drafted


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


def _odds(paths: Sequence[TokenPath], drafted: Mapping[TokenPath, Path], ranked: Ranked) -> Odds:
    """What the heads give each draft node; nothing to what only the lookup found."""
    num_ranks = len(ranked.columns[0])
    places = (
        (len(path) - 1) * num_ranks + drafted[path][-1] if path in drafted else -1 for path in paths
    )
    return Odds(ranked.chances().tobytes(), tuple(places))


def _serves(target: Target) -> bool:
    return target.heads is not None and target.heads.num_heads > 0


def _build(target: Target, num_rows: int) -> CompositeDrafter:
    heads, trees = heads_and_trees(target)
    shape = trees.tree(num_rows).pruned(heads.num_heads, heads.num_columns)
    return CompositeDrafter(heads, shape, _values(trees, shape))


def _values(trees: TreeTable, shape: TreeShape) -> dict[Path, float]:
    """The chance of every path of ranks: the product of its ranks' accuracies."""
    accuracies = trees.head_accuracies
    values = {}
    for path in shape.paths[1:]:
        value = 1.0
        for depth, rank in enumerate(path):
            known = depth < len(accuracies) and rank < len(accuracies[depth])
            value *= accuracies[depth][rank] if known else 0.0
        values[path] = value
    return values


SPEC = DrafterSpec("composite", serves=_serves, build=_build)
