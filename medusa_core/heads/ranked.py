"""What heads guess behind one row: their best tokens, and how likely each is."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.messages import Odds
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.runtime.tree.step import Chance
from medusa_core.system.native.score_reader import reader_of

# What the target adds to a head's scores where chance chooses isn't known; it blurs them about as
# much as chance does. Of 0.35 to 0.7 this gave the most tokens per step.
_SHARPNESS = 0.5
# Heads of few layers say less than a whole model, and more than Medusa heads.
_LAYERS_SHARPNESS = 0.7
_LAYERS_RANKS = 10  # of EAGLE-2's reference
_MOST_CANDIDATES = 4096


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

    __slots__ = ("_chances", "_drawn", "_sharpness", "columns", "scores", "token_ids")

    def __init__(
        self,
        token_ids: list[list[int]],
        columns: list[list[int]],
        scores: Tensor,
        chances: array[float] | None = None,
        drawn: Drawn | None = None,
        sharpness: float = _SHARPNESS,
    ) -> None:
        self.token_ids = token_ids
        self.columns = columns
        self.scores = scores
        self._chances = chances
        self._drawn = drawn
        self._sharpness = sharpness

    def chances(self) -> array[float]:
        """What each head gives its best tokens; all heads' one after the other."""
        if self._chances is None:
            self._chances = _probabilities(self.scores, self.columns)
        return self._chances

    def worths(self) -> array[float]:
        """How likely each of the best tokens is, with what is known of chance; as `chances`."""
        if self._drawn is None:
            return self.chances()
        return _probabilities(self._drawn.scores.mul(self._sharpness).float(), self._drawn.places)

    def odds(self, shape: TreeShape) -> Odds:
        """What the heads give the nodes of a tree whose ranks are theirs."""
        return Odds(self.chances().tobytes(), shape.places_among(len(self.columns[0])))


def ranked_behind(
    scores: Tensor,
    num_ranks: int,
    chance: Chance | None = None,
    depth: int = 1,
    tokens: Callable[[Tensor], Tensor] = lambda columns: columns,
    sharpness: float = _SHARPNESS,
) -> Ranked:
    """The best tokens of every row of scores, all of them as deep in a tree.

    Args:
        scores: [paths, columns], any device and float dtype
        num_ranks: How many tokens are wanted behind each path.
        chance: What will be added to the target's scores: then the best tokens are those that are
            best with it.
        depth: How deep those tokens are, from 1.
        tokens: The tokens of some columns, on the same device.
        sharpness: How far scores with chance are trusted.
    """
    if chance is None:
        columns, chances = best_of(scores, num_ranks)
        token_ids: list[list[int]] = tokens(torch.tensor(columns, device=scores.device)).tolist()
        return Ranked(token_ids, columns, scores, chances)
    num_paths, num_columns = scores.shape
    share = min(num_columns, max(num_ranks, _MOST_CANDIDATES // num_paths))
    likely = scores.topk(share, dim=-1)
    own = tokens(likely.indices).cpu()
    shifted = chance(likely.values.cpu(), own, [depth] * num_paths)
    places = shifted.topk(min(num_ranks, share), dim=-1).indices
    return Ranked(
        own.gather(1, places).tolist(),
        likely.indices.cpu().gather(1, places).tolist(),
        scores,
        drawn=Drawn(shifted, places.tolist()),
        sharpness=sharpness,
    )


def ranked_by_layers(
    scores: Tensor, chance: Chance | None, depth: int, tokens: Callable[[Tensor], Tensor]
) -> Ranked:
    """`ranked_behind` for heads of one layer or a few, which draft trees level by level."""
    num_ranks = min(_LAYERS_RANKS, scores.shape[-1])
    return ranked_behind(scores, num_ranks, chance, depth, tokens, _LAYERS_SHARPNESS)


def best_of(scores: Tensor, num_ranks: int) -> tuple[list[list[int]], array[float]]:
    """The best columns of every row and their probabilities."""
    best = scores.topk(num_ranks, dim=-1)
    wide = torch.promote_types(scores.dtype, torch.float32)
    whole = scores.to(wide).logsumexp(dim=-1, keepdim=True)
    chances = (best.values.to(wide) - whole).exp()
    # Brought from the device at once; a float64 holds every column's number.
    columns, probabilities = torch.stack([best.indices.double(), chances.double()]).tolist()
    flat = [chance for row in probabilities for chance in row]
    return [[int(column) for column in row] for row in columns], array("f", flat)


def _probabilities(scores: Tensor, columns: Sequence[Sequence[int]]) -> array[float]:
    """Of some columns of every row; all rows' one after the other."""
    rows = array("i", [row for row, some in enumerate(columns) for _ in some])
    flat = [column for some in columns for column in some]
    return array("f", reader_of(scores).probabilities(scores, rows, flat))
