"""The best token tree for given head accuracies.

A node's value is the chance that its whole path is right: the product of the accuracies of the
ranks along it. A child is never worth more than its parent and a rank never more than a better one
once accuracies are sorted, so the n most valuable nodes form a tree, found by one heap.

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
        num_nodes: Draft nodes wanted, the root not counted; fewer come back if there are no more.

    Returns:
        Rank paths sorted by (length, lexicographic); with every path comes its parent.
    """
    return sorted(
        (path for path, _ in grow(head_accuracies, num_nodes)), key=lambda path: (len(path), path)
    )


def grow(
    head_accuracies: Sequence[Sequence[float]], num_nodes: int
) -> list[tuple[SearchPath, float]]:
    """The most valuable draft nodes with their values, the best first: all trees at once.

    The first n of them are the best tree of n nodes.
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
        paths: Rank paths of the draft nodes; nodes beyond the accuracies count nothing.
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
    """The next sibling and the first child: every path has exactly one predecessor."""
    depth, rank = len(path) - 1, path[-1]
    row = ranked[depth]
    # A rank of no worth ends the row: its nodes could never be accepted.
    if rank + 1 < len(row) and row[rank] > 0:
        yield value / row[rank] * row[rank + 1], (*path[:-1], rank + 1)
    if depth + 1 < len(ranked) and ranked[depth + 1]:
        yield value * ranked[depth + 1][0], (*path, 0)


def _non_increasing(row: Sequence[float]) -> list[float]:
    """Counted accuracies may wobble in the tail; a worse rank never counts more than a better."""
    bounded: list[float] = []
    for value in row:
        bounded.append(min(value, bounded[-1]) if bounded else value)
    return bounded
