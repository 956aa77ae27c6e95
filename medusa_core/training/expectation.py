"""Tokens per step to expect of heads, by the number of tokens that they are trained on."""

from __future__ import annotations

import math
from itertools import pairwise

# Tokens trained on, counted once per epoch, and tokens per step at 8 rows. The first is for
# untrained heads; the others are runs of Hydra heads for SmolLM2 135M,
# on eight questions of MT-bench and on 24 of MT-bench and Spec-Bench (docs/performance.md). In
# between, interpolation is logarithmic; beyond it the last value is used.
_POINTS = ((1e3, 1.0), (0.95e6, 1.59), (3.6e6, 1.67), (4.3e6, 1.75))


def expected_tau(num_tokens: float) -> float:
    """Return about how many tokens per step heads reach with 8 rows.

    Args:
        num_tokens: Tokens trained on, counted once per epoch.
    """
    least, most = _POINTS[0], _POINTS[-1]
    if num_tokens <= least[0]:
        return least[1]
    for (few, low), (many, high) in pairwise(_POINTS):
        if num_tokens <= many:
            share = math.log(num_tokens / few) / math.log(many / few)
            return low + share * (high - low)
    return most[1]
