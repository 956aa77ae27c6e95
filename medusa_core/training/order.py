"""Which samples of which shard each training step reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class ShardOrder:
    """Seeded order of shards, and of samples within them, per epoch.

    Attributes:
        steps_per_epoch: Steps in which every shard is read once.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self._lengths, self._batch, self._seed = lengths, batch, seed
        self._steps = [max(1, length // batch) for length in lengths]
        self.steps_per_epoch = sum(self._steps)

    def at(self, step: int) -> tuple[int, Tensor]:
        """Return the shard that a step reads, and its samples in it. int64 [batch or fewer]"""
        turn, place = divmod(step, self.steps_per_epoch)
        for shard in sample_order(turn, len(self._steps), len(self._steps), self._seed):
            if place < self._steps[shard]:
                break
            place -= self._steps[shard]
        step_of_shard = turn * self._steps[shard] + place
        places = sample_order(step_of_shard, self._lengths[shard], self._batch, self._seed + 1)
        return int(shard), torch.from_numpy(places)


def sample_order(step: int, number: int, size: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the samples of one step in a seeded order per epoch, so that runs can resume.

    Args:
        step: Step, from 0.
        number: Number of samples.
        size: Samples per step.
        seed: Seed of the order.
    """
    epoch, place = divmod(step, max(1, number // size))
    order = np.random.default_rng([seed, epoch]).permutation(number)
    return order[place * size : (place + 1) * size].astype(np.int64)
