"""Token trees that are grown anew for each step, out of paths of tokens and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

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
    best = sorted(values, key=lambda path: (-values[path], len(path), path))[: num_rows - 1]
    ranks: dict[TokenPath, Path] = {(): ()}
    num_children: dict[TokenPath, int] = {}
    token_of: dict[Path, int] = {}
    # Shorter ones first, so that parents have their ranks; siblings by what they are worth.
    for path in sorted(best, key=lambda path: (len(path), -values[path], path)):
        parent = path[:-1]
        rank = num_children.get(parent, 0)
        num_children[parent] = rank + 1
        ranks[path] = (*ranks[parent], rank)
        token_of[ranks[path]] = path[-1]
    shape = _shape(tuple(sorted(token_of, key=lambda path: (len(path), path))))
    return TokenTree(shape, (root_id, *(token_of[path] for path in shape.paths[1:])))


@lru_cache(maxsize=512)
def _shape(paths: tuple[Path, ...]) -> TreeShape:
    """One object per shape, so that what is computed from it is computed once."""
    return TreeShape.from_paths(paths)
