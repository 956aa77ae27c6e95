"""What a training may bring: tokens per step to expect of heads that learn from so many tokens."""

from __future__ import annotations

import math
from itertools import pairwise

# Tokens learned from, counted as often as they are read, and tokens per step at 8 rows on prompts
# of MT-bench and Spec-Bench: Hydra heads of SmolLM2 135M (docs/performance.md). Larger models'
# answers are about as predictable; other kinds reach less in the same time.
_MEASURED = ((1e3, 1.0), (57e3, 1.6), (250e3, 1.75), (1e6, 1.9), (3e6, 2.0))


def expected_tau(num_tokens: float) -> float:
    """Tokens per step at 8 rows, about.

    Args:
        num_tokens: That heads learn from, each as often as it is read.
    """
    least, most = _MEASURED[0], _MEASURED[-1]
    if num_tokens <= least[0]:
        return least[1]
    for (few, low), (many, high) in pairwise(_MEASURED):
        if num_tokens <= many:
            share = math.log(num_tokens / few) / math.log(many / few)
            return low + share * (high - low)
    return most[1]
