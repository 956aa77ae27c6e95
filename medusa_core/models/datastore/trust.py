"""How likely what followed a context is to follow it again, as it has been so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from medusa_core.models.datastore.suffix_array import DEPTH, Occurrence

# By the tokens of the longest context that was found, at least: how often one of the tokens that
# followed it follows again, before anything is known. Where it stood once; twice and three times
# or more, with the same token behind it; where different ones followed. Measured on answers of
# SmolLM2 135M and Qwen2.5 Coder 0.5B.
_LENGTHS = (1, 2, 3, 4, 6, 9, 16)
_PRIOR = (
    (0.30, 0.48, 0.67, 0.42),
    (0.55, 0.68, 0.92, 0.65),
    (0.68, 0.75, 0.90, 0.60),
    (0.74, 0.88, 0.95, 0.67),
    (0.82, 0.92, 0.98, 0.77),
    (0.91, 0.95, 0.98, 0.86),
    (0.96, 0.98, 0.99, 0.92),
)
_PARTED = 3  # the last column
_KINDS = [max(0, bisect_right(_LENGTHS, length) - 1) for length in range(DEPTH + 1)]  # the row
_WEIGHTS = [4.0**kind for kind in _KINDS]  # of an occurrence of a context of that length
_PRIOR_WEIGHT = 8.0
_MOST_SEEN = 512.0  # beyond, older ones fade


class Trust:
    """Counts of how often what was found was right."""

    def __init__(self) -> None:
        self._right = [[_PRIOR_WEIGHT * share for share in row] for row in _PRIOR]
        self._tried = [[_PRIOR_WEIGHT] * len(row) for row in _PRIOR]

    def chances(self, found: Sequence[Occurrence]) -> dict[int, float]:
        """How likely each token is that followed a context.

        What followed often, and behind more of the context, is likelier.

        Args:
            found: Where the context stood; at least once.
        """
        row, column = _case(found)
        weights: dict[int, float] = {}
        for _, length, token_id in found:
            weights[token_id] = weights.get(token_id, 0.0) + _WEIGHTS[length]
        share = self._right[row][column] / self._tried[row][column] / sum(weights.values())
        return {token_id: share * weight for token_id, weight in weights.items()}

    def learn(self, found: Sequence[Occurrence], token_id: int) -> None:
        """Count what came of it.

        Args:
            found: As above.
            token_id: What followed this time.
        """
        row, column = _case(found)
        if self._tried[row][column] >= _MOST_SEEN:
            self._tried[row][column] /= 2
            self._right[row][column] /= 2
        self._tried[row][column] += 1
        self._right[row][column] += any(one.token_id == token_id for one in found)


def _case(found: Sequence[Occurrence]) -> tuple[int, int]:
    """Row and column of what is known of such occurrences."""
    row = _KINDS[max(length for _, length, _ in found)]
    first = found[0].token_id
    has_parted = any(token_id != first for _, _, token_id in found)
    return row, _PARTED if has_parted else min(len(found), _PARTED) - 1
