"""What a training may bring: tokens per step to expect of heads that learn from so many tokens."""

from __future__ import annotations

import math
from itertools import pairwise

# Tokens learned from, counted as often as they are read, and tokens per step at 8 rows. The first
# stands for heads that have learned nothing; the others are runs of Hydra heads for SmolLM2 135M,
# on eight questions of MT-bench and on 24 of MT-bench and Spec-Bench (docs/performance.md). In
# between a logarithm is assumed, and nothing is promised beyond it.
_POINTS = ((1e3, 1.0), (0.95e6, 1.59), (3.6e6, 1.67))


def expected_tau(num_tokens: float) -> float:
    """Tokens per step at 8 rows, about.

    Args:
        num_tokens: That heads learn from, each as often as it is read.
    """
    least, most = _POINTS[0], _POINTS[-1]
    if num_tokens <= least[0]:
        return least[1]
    for (few, low), (many, high) in pairwise(_POINTS):
        if num_tokens <= many:
            share = math.log(num_tokens / few) / math.log(many / few)
            return low + share * (high - low)
    return most[1]
