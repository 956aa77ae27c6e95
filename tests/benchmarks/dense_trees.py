"""Dense trees: behind every node of a depth the same number of the best ranks, all combined.

Source: Medusa (Cai et al. 2024), section 2.1.2, for trees by the Cartesian product of the heads'
top predictions, and section 2.3.2, which prunes them to sparse ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from medusa_core.runtime.tree.search import (
    SearchPath,
    expected_length,
)

Widths = tuple[int, ...]


def dense_paths(widths: Widths) -> list[SearchPath]:
    """Return all draft nodes of the tree in which each node of depth d has `widths[d]` children."""
    return [
        path
        for depth in range(1, len(widths) + 1)
        for path in product(*(range(width) for width in widths[:depth]))
    ]


def best_dense(head_accuracies: Sequence[Sequence[float]], num_nodes: int) -> Widths:
    """Return the widths of the dense tree of at most `num_nodes` draft nodes with the highest
    expected length.

    Args:
        head_accuracies: Per head (depth), the probability that its rank 0, 1, ... is right.
        num_nodes: Draft nodes, the root not counted.

    Returns:
        One width for each depth; of equals the one of fewest nodes. Empty where nothing fits.
    """
    found = [
        (expected_length(dense_paths(widths), head_accuracies), -len(dense_paths(widths)), widths)
        for widths in _fitting(tuple(map(len, head_accuracies)), num_nodes)
    ]
    return max(found, default=(0.0, 0, ()))[-1]


def _fitting(most: Sequence[int], num_nodes: int, row: int = 1) -> Iterator[Widths]:
    """Yield all widths whose trees have at most the given number of nodes, below a depth of `row`
    nodes.
    """
    if not most:
        return
    for width in range(1, min(most[0], num_nodes // row) + 1):
        yield (width,)
        for below in _fitting(most[1:], num_nodes - row * width, row * width):
            yield (width, *below)
