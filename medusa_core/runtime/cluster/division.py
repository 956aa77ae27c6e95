"""Division of layers among machines so that the slowest one takes as little time as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Power(NamedTuple):
    """Speed and capacity of a machine.

    Attributes:
        layer_s: Seconds of a layer in a step.
        most_layers: Layers that fit into its memory.
    """

    layer_s: float
    most_layers: int


def divide(num_layers: int, powers: Sequence[Power]) -> list[int] | None:
    """Divide layers among machines.

    Each layer goes to the machine that would finish it first, which is optimal for equal jobs.

    Args:
        num_layers: Number of layers.
        powers: Speed and capacity of each machine.

    Returns:
        Number of layers of each machine; None if they don't fit into all memory.
    """
    counts = [0] * len(powers)
    for _ in range(num_layers):
        free = [i for i, power in enumerate(powers) if counts[i] < power.most_layers]
        if not free:
            return None
        counts[min(free, key=lambda i: (counts[i] + 1) * powers[i].layer_s)] += 1
    return counts


def slowest_s(counts: Sequence[int], powers: Sequence[Power]) -> float:
    """Return the seconds of the slowest machine in a step."""
    return max(count * power.layer_s for count, power in zip(counts, powers, strict=True))
