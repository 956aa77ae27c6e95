"""How likely what followed a context is to follow it again, as it has been so far."""

from __future__ import annotations

from bisect import bisect_right

from medusa_core.models.datastore.suffix_array import DEPTH, Found

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

    def chances(self, found: Found) -> dict[int, float]:
        """How likely each token is that followed a context.

        What followed often, and behind more of the context, is likelier.

        Args:
            found: Where the context stood; at least once.
        """
        row, column = _case(found)
        share = self._right[row][column] / self._tried[row][column]
        if column != _PARTED:
            return {found.token_ids[0]: share}
        weights: dict[int, float] = {}
        for length, token_id in zip(found.lengths, found.token_ids, strict=True):
            weights[token_id] = weights.get(token_id, 0.0) + _WEIGHTS[length]
        share /= sum(weights.values())
        return {token_id: share * weight for token_id, weight in weights.items()}

    def learn(self, found: Found, token_id: int) -> None:
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
        self._right[row][column] += token_id in found.token_ids


def _case(found: Found) -> tuple[int, int]:
    """Row and column of what is known of such contexts."""
    _, lengths, token_ids = found
    num = len(token_ids)
    has_parted = token_ids.count(token_ids[0]) < num
    return _KINDS[max(lengths)], _PARTED if has_parted else min(num, _PARTED) - 1
