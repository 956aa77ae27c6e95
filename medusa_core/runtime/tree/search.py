"""The best token tree for given head accuracies.

A node's value is the probability that its whole path is accepted: the product of the accuracies of
the ranks along it. No child is more valuable than its parent, and no rank than a better one once
accuracies are sorted, so the n most valuable nodes form a tree, found with one heap.

Source: Medusa (Cai et al. 2024), section 2.3.2, which grows the tree greedily node by node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

SearchPath = tuple[int, ...]


def best_paths(head_accuracies: Sequence[Sequence[float]], num_nodes: int) -> list[SearchPath]:
    """The `num_nodes` most valuable draft nodes.

    Args:
        head_accuracies: Per head (depth), the probability that its rank 0, 1, ... is right.
        num_nodes: Number of draft nodes without the root; fewer are returned if there are no more.

    Returns:
        Rank paths in order of length, then lexicographic; all parents are included.
    """
    return sorted(
        (path for path, _ in grow(head_accuracies, num_nodes)), key=lambda path: (len(path), path)
    )


def grow(
    head_accuracies: Sequence[Sequence[float]], num_nodes: int
) -> list[tuple[SearchPath, float]]:
    """The most valuable draft nodes with their values, the best first.

    For each n the first n of them are the best tree of n nodes.
    """
    ranked = [_non_increasing(row) for row in head_accuracies]
    if not ranked or not ranked[0] or num_nodes < 1:
        return []
    chosen: list[tuple[SearchPath, float]] = []
    heap: list[tuple[float, SearchPath]] = [(-ranked[0][0], (0,))]
    while heap and len(chosen) < num_nodes:
        negative_value, path = heapq.heappop(heap)
        chosen.append((path, -negative_value))
        for value, successor in _successors(-negative_value, path, ranked):
            heapq.heappush(heap, (-value, successor))
    return chosen


def expected_length(
    paths: Iterable[SearchPath], head_accuracies: Sequence[Sequence[float]]
) -> float:
    """Expected tokens per step (τ, the bonus token included) of a tree, heads independent.

    Args:
        paths: Rank paths of the draft nodes; those without an accuracy count nothing.
        head_accuracies: Per head (depth), the probability that its rank 0, 1, ... is right.
    """
    total = 1.0
    for path in paths:
        value = 1.0
        for depth, rank in enumerate(path):
            known = depth < len(head_accuracies) and rank < len(head_accuracies[depth])
            value *= head_accuracies[depth][rank] if known else 0.0
        total += value
    return total


def _successors(
    value: float, path: SearchPath, ranked: Sequence[Sequence[float]]
) -> Iterable[tuple[float, SearchPath]]:
    """The next sibling and the first child, so that every path has exactly one predecessor."""
    depth, rank = len(path) - 1, path[-1]
    row = ranked[depth]
    # Ranks after one with accuracy 0 could never be accepted.
    if rank + 1 < len(row) and row[rank] > 0:
        yield value / row[rank] * row[rank + 1], (*path[:-1], rank + 1)
    if depth + 1 < len(ranked) and ranked[depth + 1]:
        yield value * ranked[depth + 1][0], (*path, 0)


def _non_increasing(row: Sequence[float]) -> list[float]:
    """Make accuracies non-increasing: counts of rare ranks are noisy."""
    bounded: list[float] = []
    for value in row:
        bounded.append(min(value, bounded[-1]) if bounded else value)
    return bounded
