"""Probabilities that the tokens after an earlier occurrence of a context follow again."""

from __future__ import annotations

from bisect import bisect_right

from medusa_core.models.datastore.suffix_array import DEPTH, Found

# Prior by the length of the longest match (rows, at least `_LENGTHS`) and the occurrences (columns:
# one; two or at least three with the same follower; different followers): how often one of the
# followers is right. Measured on answers of SmolLM2 135M and Qwen2.5 Coder 0.5B.
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
_DIFFERENT = 3  # the last column
_KINDS = [max(0, bisect_right(_LENGTHS, length) - 1) for length in range(DEPTH + 1)]  # the row
_WEIGHTS = [4.0**kind for kind in _KINDS]  # of an occurrence with a match of that length
_PRIOR_WEIGHT = 8.0
_MAX_TRIED = 512.0  # then counts are halved, so that older ones fade


class FollowerStats:
    """Counts how often a follower of an earlier occurrence was right."""

    def __init__(self) -> None:
        self._right = [[_PRIOR_WEIGHT * share for share in row] for row in _PRIOR]
        self._tried = [[_PRIOR_WEIGHT] * len(row) for row in _PRIOR]

    def probabilities(self, matches: Found) -> dict[int, float]:
        """Return the probability of each follower; frequent ones and longer matches weigh more.

        Args:
            matches: Occurrences of the context; at least one.
        """
        row, column = _case(matches)
        share = self._right[row][column] / self._tried[row][column]
        if column != _DIFFERENT:
            return {matches.token_ids[0]: share}
        weights: dict[int, float] = {}
        for length, token_id in zip(matches.lengths, matches.token_ids, strict=True):
            weights[token_id] = weights.get(token_id, 0.0) + _WEIGHTS[length]
        share /= sum(weights.values())
        return {token_id: share * weight for token_id, weight in weights.items()}

    def learn(self, matches: Found, token_id: int) -> None:
        """Count whether one of the followers was right.

        Args:
            matches: Occurrences of the context.
            token_id: The token that followed this time.
        """
        row, column = _case(matches)
        if self._tried[row][column] >= _MAX_TRIED:
            self._tried[row][column] /= 2
            self._right[row][column] /= 2
        self._tried[row][column] += 1
        self._right[row][column] += token_id in matches.token_ids


def _case(matches: Found) -> tuple[int, int]:
    """Return row and column of the tables."""
    _, lengths, token_ids = matches
    num = len(token_ids)
    differs = token_ids.count(token_ids[0]) < num
    return _KINDS[max(lengths)], _DIFFERENT if differs else min(num, _DIFFERENT) - 1
