"""Which places of which shard each step of a training reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class ShardOrder:
    """Shards and places in a seeded order a round.

    Attributes:
        steps_of_a_round: Steps in which every shard is read once.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self._lengths, self._batch, self._seed = lengths, batch, seed
        self._steps = [max(1, length // batch) for length in lengths]
        self.steps_of_a_round = sum(self._steps)

    def at(self, step: int) -> tuple[int, Tensor]:
        """The shard of a step, and places in it. int64 [batch or fewer]"""
        turn, place = divmod(step, self.steps_of_a_round)
        for shard in places_at(turn, len(self._steps), len(self._steps), self._seed):
            if place < self._steps[shard]:
                break
            place -= self._steps[shard]
        step_of_shard = turn * self._steps[shard] + place
        places = places_at(step_of_shard, self._lengths[shard], self._batch, self._seed + 1)
        return int(shard), torch.from_numpy(places)


def places_at(step: int, number: int, size: int, seed: int) -> npt.NDArray[np.int64]:
    """What one step reads: a seeded order of all per epoch, so that a run can resume.

    Args:
        step: from 0.
        number: of all there are.
        size: how many a step reads.
        seed: of the order.
    """
    epoch, place = divmod(step, max(1, number // size))
    order = np.random.default_rng([seed, epoch]).permutation(number)
    return order[place * size : (place + 1) * size].astype(np.int64)
