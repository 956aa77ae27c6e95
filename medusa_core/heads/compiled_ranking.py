"""Ranks rows of logits by the compiled step."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.tree.step import Chance, PositionNoise, SeededChance
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import MAX_TOP_K
from medusa_core.system.native.structs import NoiseStruct, RankingStruct

# A head's logits differ from the target's; the difference blurs the noisy ranking about as
# much as the noise does. Of 0.35 to 0.7 this gave the most tokens per step.
SHARPNESS = 0.5
_BYTES = 4


class RankedColumns(NamedTuple):
    """The best columns of some rows, row by row, the best first.

    Attributes:
        columns: The columns. int32
        token_ids: Their token ids. int32
        chances: Their probabilities, given the sampling noise if any. float32
    """

    columns: array[int]
    token_ids: array[int]
    chances: array[float]


class CompiledRanking:
    """A C `Ranking`, and the memory that it points to.

    Attributes:
        address: Address of the structure.
        ranked: Takes the result.
    """

    def __init__(
        self,
        num_rows: int,
        num_ranks: int,
        num_columns: int,
        token_map: Tensor | None = None,
        noises: Sequence[PositionNoise] = (),
        sharpness: float = 1.0,
    ) -> None:
        """Prepare a call.

        Args:
            num_rows: Number of rows.
            num_ranks: Best columns per row, at most `MAX_TOP_K`.
            num_columns: Columns that are ranked, from the first on.
            token_map: Token id of each column; None if columns are token ids. int64, on the CPU
            noises: Noise of each position, which equally many consecutive rows have; empty for
                none.
            sharpness: Factor of noisy scores, which flattens their softmax.
        """
        count = num_rows * num_ranks
        columns, token_ids = array("i", bytes(_BYTES * count)), array("i", bytes(_BYTES * count))
        self.ranked = RankedColumns(columns, token_ids, array("f", bytes(_BYTES * count)))
        self._kept = (token_map, noises)
        self._noises = (NoiseStruct * len(noises))()
        for struct, noise in zip(self._noises, noises, strict=True):
            struct.uniform = noise.uniform.__array_interface__["data"][0]
            struct.temperature, struct.top_k = noise.temperature, noise.top_k
            struct.top_p, struct.min_p = noise.top_p, noise.min_p
        self._struct = RankingStruct(
            token_ids=None if token_map is None else token_map.data_ptr(),
            noises=addressof(self._noises) if noises else None,
            columns=columns.buffer_info()[0],
            tokens=token_ids.buffer_info()[0],
            probabilities=self.ranked.chances.buffer_info()[0],
            num_columns=num_columns,
            k=num_ranks,
            rows_per_noise=num_rows // max(1, len(noises)),
            sharpness=sharpness,
            # The mean of e^(s · g) for Gumbel noise g is Γ(1 − s).
            tail_factor=math.gamma(1 - sharpness) if noises else 0.0,
        )
        self.address = addressof(self._struct)


def noises_of(
    chance: Chance | None, depths: Sequence[int], vocab_size: int
) -> list[PositionNoise] | None:
    """Return the noise of some depths; empty without any, None if compiled code can't have it."""
    if chance is None:
        return []
    if not isinstance(chance, SeededChance):
        return None
    return [chance.noise(depth, vocab_size) for depth in depths]


def rank_compiled(
    scores: Tensor,
    num_ranks: int,
    token_map: Tensor | None,
    noises: Sequence[PositionNoise] | None,
    sharpness: float,
) -> RankedColumns | None:
    """Rank rows of logits on the calling thread; see `CompiledRanking`.

    Args:
        scores: [rows, columns]

    Returns:
        None if the compiled step can't rank them.
    """
    library = native_library()
    is_small = num_ranks <= MAX_TOP_K and scores.dtype == torch.float32 and scores.is_cpu
    if library is None or noises is None or not is_small or scores.stride(1) != 1:
        return None
    if token_map is not None and not (token_map.dim() == 1 and token_map.is_cpu):
        return None
    rows, columns = scores.shape
    ranking = CompiledRanking(rows, num_ranks, columns, token_map, noises, sharpness)
    library.rank_rows(scores.data_ptr(), scores.stride(0), rows, ranking.address, None)
    return ranking.ranked
