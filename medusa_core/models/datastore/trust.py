"""How likely what followed a context is to follow again, as it has been so far."""

from __future__ import annotations

from collections.abc import Sequence

# Before anything is known: the share in which one of the found tokens follows, by the context's
# size, the longest first; where it stood once, where the same followed each time, where not.
_PRIOR = ((0.8, 0.95, 0.9), (0.5, 0.8, 0.75), (0.2, 0.45, 0.5))
_PRIOR_WEIGHT = 8.0
_MOST_SEEN = 512.0  # beyond, older ones fade
_ONCE, _AGREED, _PARTED = range(3)


class Trust:
    """Counts of how often what was found was right."""

    def __init__(self) -> None:
        self._right = [[_PRIOR_WEIGHT * share for share in row] for row in _PRIOR]
        self._tried = [[_PRIOR_WEIGHT] * len(row) for row in _PRIOR]

    def chances(self, kind: int, followers: Sequence[int]) -> dict[int, float]:
        """How likely each token is that followed a context.

        Args:
            kind: Which size of context it was, counted from the longest.
            followers: What followed it each time.
        """
        case = _case(followers)
        share = self._right[kind][case] / self._tried[kind][case] / len(followers)
        found: dict[int, float] = {}
        for token_id in followers:
            found[token_id] = found.get(token_id, 0.0) + share
        return found

    def learn(self, kind: int, followers: Sequence[int], token_id: int) -> None:
        """Count what came of it.

        Args:
            kind: As above.
            followers: As above.
            token_id: What followed this time.
        """
        case = _case(followers)
        if self._tried[kind][case] >= _MOST_SEEN:
            self._tried[kind][case] /= 2
            self._right[kind][case] /= 2
        self._tried[kind][case] += 1
        self._right[kind][case] += token_id in followers


def _case(followers: Sequence[int]) -> int:
    if len(followers) == 1:
        return _ONCE
    return _AGREED if followers.count(followers[0]) == len(followers) else _PARTED
