"""Best tokens of heads after some paths, with their probabilities."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.heads.compiled_ranking import SHARPNESS, RankedColumns, noises_of, rank_compiled
from medusa_core.messages import Odds
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.runtime.tree.step import Chance
from medusa_core.system.native.score_reader import reader_of

# Heads of transformer layers are closer to the target than Medusa heads.
_LAYERS_SHARPNESS = 0.7
_LAYERS_RANKS = 10  # of EAGLE-2's reference
_MOST_CANDIDATES = 4096


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """The tokens that heads can draft.

    Attributes:
        size: Size of the target's vocabulary.
        token_ids: Token id of each column of the heads' logits; None if columns are token ids.
            int64, [columns], or [paths, columns] if they differ by path
    """

    size: int
    token_ids: Tensor | None = None

    def tokens(self, columns: Tensor) -> Tensor:
        """Return the token ids of some columns of each row. [rows, any]"""
        if self.token_ids is None:
            return columns
        token_ids = self.token_ids.to(columns.device)
        return token_ids[columns] if token_ids.dim() == 1 else token_ids.gather(1, columns)


class RankedTokens(NamedTuple):
    """Best tokens after some paths, path by path, the best first.

    Attributes:
        token_ids: Equally many for each path. int32
        chances: Their probabilities, given the sampling noise if any. float32
    """

    token_ids: array[int]
    chances: array[float]


class Ranked:
    """Best tokens of several heads, or of one head after several paths.

    Attributes:
        token_ids: Best tokens per head, best first; equally many for each.
        columns: Their columns in `scores`.
        scores: The heads' logits. [heads, columns]
    """

    __slots__ = ("_chances", "_noised", "columns", "scores", "token_ids")

    def __init__(
        self,
        token_ids: list[list[int]],
        columns: list[list[int]],
        scores: Tensor,
        chances: array[float] | None = None,
        noised: array[float] | None = None,
    ) -> None:
        self.token_ids = token_ids
        self.columns = columns
        self.scores = scores
        self._chances = chances
        self._noised = noised

    @classmethod
    def of_compiled(cls, found: RankedColumns, scores: Tensor, is_noisy: bool) -> Ranked:
        """Return what the compiled step ranked.

        Args:
            found: The best columns.
            scores: The heads' logits. [heads, columns]
            is_noisy: Whether noise was added.
        """
        size = len(found.columns) // len(scores)
        columns, token_ids = (
            [flat[at : at + size].tolist() for at in range(0, len(flat), size)]
            for flat in (found.columns, found.token_ids)
        )
        if is_noisy:
            return cls(token_ids, columns, scores, noised=found.chances)
        return cls(token_ids, columns, scores, found.chances)

    def chances(self) -> array[float]:
        """Return the softmax probabilities of the top tokens, concatenated over all heads."""
        if self._chances is None:
            self._chances = _probabilities(self.scores, self.columns)
        return self._chances

    def noised_probabilities(self) -> array[float]:
        """Return the top tokens' probabilities given the sampling noise, if any; else `chances`."""
        return self.chances() if self._noised is None else self._noised

    def odds(self, shape: TreeShape) -> Odds:
        """Return the heads' probabilities for the nodes of a tree of their ranks."""
        return Odds(self.chances().tobytes(), shape.places_among(len(self.columns[0])))


def rank_tokens(
    scores: Tensor,
    num_ranks: int,
    vocabulary: DraftVocabulary,
    chance: Chance | None = None,
    depth: int = 1,
    sharpness: float = SHARPNESS,
) -> RankedTokens:
    """Return the best tokens after paths of one length.

    Args:
        scores: [paths, columns], any device and float dtype
        num_ranks: Number of tokens per path.
        vocabulary: Tokens of the columns.
        chance: Adds the sampling noise of the target's coming choice; tokens are ranked with it.
        depth: Depth of the tokens in the tree, from 1.
        sharpness: Factor of noisy scores, which flattens their softmax.
    """
    # A draft model's scores are so close to the target's that unlikely tokens must be drawn, too.
    noises = noises_of(chance, (depth,), vocabulary.size) if sharpness < 1 or not chance else None
    found = rank_compiled(scores, num_ranks, vocabulary.token_ids, noises, sharpness)
    if found is not None:
        return RankedTokens(found.token_ids, found.chances)
    num_paths, num_columns = scores.shape
    if chance is None:
        columns, chances = best_of(scores, num_ranks)
        best = vocabulary.tokens(torch.tensor(columns, device=scores.device))
        return RankedTokens(_flat(best), chances)
    share = min(num_columns, max(num_ranks, _MOST_CANDIDATES // num_paths))
    likely = scores.topk(share, dim=-1)
    own = vocabulary.tokens(likely.indices).cpu()
    shifted = chance(likely.values.cpu(), own, [depth] * num_paths)
    places = shifted.topk(min(num_ranks, share), dim=-1).indices
    return RankedTokens(_flat(own.gather(1, places)), noised(shifted, places.tolist(), sharpness))


def rank_tokens_of_layers(
    scores: Tensor, vocabulary: DraftVocabulary, chance: Chance | None, depth: int
) -> RankedTokens:
    """Call `rank_tokens` with the settings for heads of transformer layers."""
    num_ranks = min(_LAYERS_RANKS, scores.shape[-1])
    return rank_tokens(scores, num_ranks, vocabulary, chance, depth, _LAYERS_SHARPNESS)


def noised(
    shifted: Tensor, places: Sequence[Sequence[int]], sharpness: float = SHARPNESS
) -> array[float]:
    """Return the probabilities of the best candidates, given the sampling noise.

    Args:
        shifted: Noisy scores of all candidates. float64 [rows, candidates], on the CPU
        places: Indices of each row's best candidates.
        sharpness: Factor of the scores, which flattens their softmax.
    """
    return _probabilities(shifted.mul(sharpness).float(), places)


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


def _flat(token_ids: Tensor) -> array[int]:
    """Concatenate rows of token ids."""
    return array("i", token_ids.flatten().tolist())


def _probabilities(scores: Tensor, columns: Sequence[Sequence[int]]) -> array[float]:
    """Return the softmax probabilities of some columns of each row, all rows' concatenated."""
    rows = array("i", [row for row, some in enumerate(columns) for _ in some])
    flat = [column for some in columns for column in some]
    return array("f", reader_of(scores).probabilities(scores, rows, flat))
