"""Token trees that are grown anew for each step, out of paths of tokens and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter

from medusa_core.tree.shape import Path, TokenTree, TreeShape

TokenPath = tuple[int, ...]


def grow_tree(root_id: int, values: Mapping[TokenPath, float], num_rows: int) -> TokenTree:
    """Keep the most valuable paths as one trie.

    Args:
        root_id: The decided token.
        values: Paths of tokens below the root with the chance that all of their tokens are right;
            with every path come its beginnings, which are worth at least as much.
        num_rows: Most nodes, root included.
    """
    # Plain tuples compare faster than keys are made, and this runs in every step.
    best = sorted([(-value, len(path), path) for path, value in values.items()])[: num_rows - 1]
    # Shorter ones first, so that parents have their ranks; siblings by what they are worth.
    best.sort(key=itemgetter(1))
    ranks: dict[TokenPath, Path] = {(): ()}
    num_children: dict[TokenPath, int] = {}
    nodes = []
    for _, length, path in best:
        parent = path[:-1]
        rank = num_children.get(parent, 0)
        num_children[parent] = rank + 1
        ranks[path] = place = (*ranks[parent], rank)
        nodes.append((length, place, path[-1]))
    nodes.sort()
    shape = _shape(tuple([place for _, place, _ in nodes]))
    return TokenTree(shape, (root_id, *[token_id for _, _, token_id in nodes]))


@lru_cache(maxsize=512)
def _shape(paths: tuple[Path, ...]) -> TreeShape:
    """One object per shape, so that what is computed from it is computed once."""
    return TreeShape.from_paths(paths)
