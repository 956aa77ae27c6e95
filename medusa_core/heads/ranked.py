"""Best tokens of heads after some paths, with their probabilities."""

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

# A head's logits differ from the target's; the difference blurs the noisy ranking about as
# much as the noise does. Of 0.35 to 0.7 this gave the most tokens per step.
_SHARPNESS = 0.5
# Heads of transformer layers are closer to the target than Medusa heads.
_LAYERS_SHARPNESS = 0.7
_LAYERS_RANKS = 10  # of EAGLE-2's reference
_MOST_CANDIDATES = 4096


class Drawn(NamedTuple):
    """Scores with sampling noise.

    Attributes:
        scores: Scores of all candidates. float64, [heads, candidates], on the CPU
        places: Indices of each head's best candidates.
    """

    scores: Tensor
    places: list[list[int]]


class Ranked:
    """Best tokens of several heads, or of one head after several paths.

    Attributes:
        token_ids: Best tokens per head, best first; equally many for each.
        columns: Their columns in `scores`.
        scores: The heads' logits. [heads, columns]
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
        """Return the softmax probabilities of the top tokens, concatenated over all heads."""
        if self._chances is None:
            self._chances = _probabilities(self.scores, self.columns)
        return self._chances

    def noised_probabilities(self) -> array[float]:
        """Return the top tokens' probabilities given the sampling noise, if any; else `chances`."""
        if self._drawn is None:
            return self.chances()
        return _probabilities(self._drawn.scores.mul(self._sharpness).float(), self._drawn.places)

    def odds(self, shape: TreeShape) -> Odds:
        """Return the heads' probabilities for the nodes of a tree of their ranks."""
        return Odds(self.chances().tobytes(), shape.places_among(len(self.columns[0])))


def rank_tokens(
    scores: Tensor,
    num_ranks: int,
    chance: Chance | None = None,
    depth: int = 1,
    tokens: Callable[[Tensor], Tensor] = lambda columns: columns,
    sharpness: float = _SHARPNESS,
) -> Ranked:
    """Return the best tokens after paths of one length.

    Args:
        scores: [paths, columns], any device and float dtype
        num_ranks: Number of tokens per path.
        chance: Adds the sampling noise of the target's coming choice; tokens are ranked with it.
        depth: Depth of the tokens in the tree, from 1.
        tokens: Returns the token ids of some columns, on the same device.
        sharpness: Factor of noisy scores, which flattens their softmax.
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


def rank_tokens_of_layers(
    scores: Tensor, chance: Chance | None, depth: int, tokens: Callable[[Tensor], Tensor]
) -> Ranked:
    """Call `rank_tokens` with the settings for heads of transformer layers."""
    num_ranks = min(_LAYERS_RANKS, scores.shape[-1])
    return rank_tokens(scores, num_ranks, chance, depth, tokens, _LAYERS_SHARPNESS)


def best_of(scores: Tensor, num_ranks: int) -> tuple[list[list[int]], array[float]]:
    """Return the best columns of each row, and their probabilities."""
    best = scores.topk(num_ranks, dim=-1)
    wide = torch.promote_types(scores.dtype, torch.float32)
    whole = scores.to(wide).logsumexp(dim=-1, keepdim=True)
    chances = (best.values.to(wide) - whole).exp()
    # One copy from the device; float64 represents every column index exactly.
    columns, probabilities = torch.stack([best.indices.double(), chances.double()]).tolist()
    flat = [chance for row in probabilities for chance in row]
    return [[int(column) for column in row] for row in columns], array("f", flat)


def _probabilities(scores: Tensor, columns: Sequence[Sequence[int]]) -> array[float]:
    """Return the softmax probabilities of some columns of each row, all rows' concatenated."""
    rows = array("i", [row for row, some in enumerate(columns) for _ in some])
    flat = [column for some in columns for column in some]
    return array("f", reader_of(scores).probabilities(scores, rows, flat))
