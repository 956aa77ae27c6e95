"""How many layers each machine gets: so many that none is waited for longer than need be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Power(NamedTuple):
    """What a machine can do.

    Attributes:
        layer_s: Seconds of a layer in a step.
        most_layers: Layers that it has memory for.
    """

    layer_s: float
    most_layers: int


def divide(num_layers: int, powers: Sequence[Power]) -> list[int] | None:
    """Layers of each machine, the slowest one's time being as short as it can be.

    A layer goes where it is done first; for equal pieces of work that is the best division.

    Args:
        num_layers: All layers.
        powers: Of each machine.

    Returns:
        Their layers; None where all memory together is too little.
    """
    counts = [0] * len(powers)
    for _ in range(num_layers):
        free = [i for i, power in enumerate(powers) if counts[i] < power.most_layers]
        if not free:
            return None
        counts[min(free, key=lambda i: (counts[i] + 1) * powers[i].layer_s)] += 1
    return counts


def slowest_s(counts: Sequence[int], powers: Sequence[Power]) -> float:
    """Seconds that the slowest machine takes for its layers."""
    return max(count * power.layer_s for count, power in zip(counts, powers, strict=True))
