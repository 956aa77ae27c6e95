"""What heads guess behind one row: their best tokens, and how likely each is."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.messages import Odds
from medusa_core.native.score_reader import reader_of
from medusa_core.tree.shape import TreeShape

# What the target adds to a head's scores where chance chooses isn't known; it blurs them about as
# much as chance does. Of 0.35 to 0.7 this gave the most tokens per step.
_SHARPNESS = 0.5


class Drawn(NamedTuple):
    """Scores with the sampling noise added.

    Attributes:
        scores: Of all candidates. float64, [heads, candidates], on the CPU
        places: Where the best of each head stand.
    """

    scores: Tensor
    places: list[list[int]]


class Ranked:
    """What the heads guess behind one row.

    Attributes:
        token_ids: Per head its best tokens, best first; of each head as many.
        columns: Where they stand in `scores`.
        scores: The heads' scores. [heads, columns]
    """

    __slots__ = ("_chances", "_drawn", "columns", "scores", "token_ids")

    def __init__(
        self,
        token_ids: list[list[int]],
        columns: list[list[int]],
        scores: Tensor,
        chances: array[float] | None = None,
        drawn: Drawn | None = None,
    ) -> None:
        self.token_ids = token_ids
        self.columns = columns
        self.scores = scores
        self._chances = chances
        self._drawn = drawn

    def chances(self) -> array[float]:
        """What each head gives its best tokens; all heads' one after the other."""
        if self._chances is None:
            self._chances = _probabilities(self.scores, self.columns)
        return self._chances

    def worths(self) -> array[float]:
        """How likely each of the best tokens is, with what is known of chance; as `chances`."""
        if self._drawn is None:
            return self.chances()
        return _probabilities(self._drawn.scores.mul(_SHARPNESS).float(), self._drawn.places)

    def odds(self, shape: TreeShape) -> Odds:
        """What the heads give the nodes of a tree whose ranks are theirs."""
        return Odds(self.chances().tobytes(), shape.places_among(len(self.columns[0])))


def best_of(scores: Tensor, num_ranks: int) -> tuple[list[list[int]], array[float]]:
    """The best columns of every row and their probabilities."""
    best = scores.topk(num_ranks, dim=-1)
    whole = scores.float().logsumexp(dim=-1, keepdim=True)
    chances = (best.values.float() - whole).exp()
    # Brought from the device at once; a float64 holds every column's number.
    columns, given = torch.stack([best.indices.double(), chances.double()]).tolist()
    flat = [chance for row in given for chance in row]
    return [[int(column) for column in row] for row in columns], array("f", flat)


def _probabilities(scores: Tensor, columns: Sequence[Sequence[int]]) -> array[float]:
    """Of some columns of every row; all rows' one after the other."""
    rows = array("i", [row for row, some in enumerate(columns) for _ in some])
    flat = [column for some in columns for column in some]
    return array("f", reader_of(scores).probabilities(scores, rows, flat))
