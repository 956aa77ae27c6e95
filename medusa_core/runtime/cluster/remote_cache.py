"""A session's cache whose rows are on other machines; this one keeps the token ids of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from weakref import finalize

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.runtime.cluster.protocol import CacheRequest
from medusa_core.runtime.kv.cache import KvCache

NO_EPOCH = -1
PLACEHOLDER_DTYPE = torch.uint8
_CPU = torch.device("cpu")


class Remote:
    """Id of a cache on the stages, which free it after this object is garbage-collected.

    Attributes:
        cache_id: The id.
        epoch: Division of layers in which the stages have its rows; −1 if they have none.
    """

    def __init__(self, numbers: count[int], unused: list[int]) -> None:
        self.cache_id = next(numbers)
        self.epoch = NO_EPOCH
        finalize(self, unused.append, self.cache_id)


class RemoteCache(KvCache):
    """Knows the token of every row, so that a new stage can compute them again.

    Attributes:
        token_ids: Token ids of the committed rows.
        is_blank: Its rows are zeros, for measurements.
        remote: Its id on the stages.
    """

    def __init__(
        self,
        config: ModelConfig,
        new_remote: Callable[[], Remote],
        read: Callable[[RemoteCache], Tensor],
        capacity: int,
        memory: Tensor | None = None,
    ) -> None:
        """Create an empty cache.

        Args:
            config: Config of the target.
            new_remote: Returns an unused id.
            read: Reads the committed rows from the stages.
            capacity: Number of slots.
            memory: Memory from a `CachePool`; None allocates it.
        """
        super().__init__(
            placeholder_config(config), PLACEHOLDER_DTYPE, _CPU, capacity, memory=memory
        )
        self.token_ids: list[int] = []
        self.is_blank = False
        self.remote = new_remote()
        self._new_remote = new_remote
        self._read = read
        self._fresh_ids: Sequence[int] = ()
        self._keep: tuple[int, ...] = ()

    def open(self, token_ids: Sequence[int]) -> None:
        """Reserve rows for tokens that the next pass computes."""
        self.reserve(len(token_ids))
        self._fresh_ids = token_ids

    def request(self) -> CacheRequest:
        """Return the changes that the stages don't know yet."""
        return CacheRequest(
            self.remote.cache_id, self._keep, self.length, self.capacity, self.is_blank
        )

    def mark_sent(self) -> None:
        """Note that the stages know all changes."""
        self._keep = ()

    def restart(self) -> CacheRequest:
        """Take a new id, under which the stages have no rows; return the first request for it."""
        self.remote = self._new_remote()
        self._keep = ()
        return self.request() if self.is_blank else replace(self.request(), length=0)

    def mark_restored(self, epoch: int, keep: tuple[int, ...]) -> None:
        """Note that the stages have computed its rows.

        Args:
            epoch: Their division of layers.
            keep: Rows of their last pass that are still to be committed there.
        """
        self.remote.epoch = epoch
        self._keep = keep

    def commit(self, slots: Sequence[int]) -> None:
        """Commit reserved rows, and note them for the next request to the stages."""
        super().commit(slots)
        self._keep = tuple(slots)
        self.token_ids += [self._fresh_ids[slot] for slot in slots]

    def truncate(self, length: int) -> None:
        """Drop rows from `length` on, and their tokens."""
        super().truncate(length)
        del self.token_ids[self.length :]

    def num_reusable(self, num_rows: int) -> int:
        """Return 0: the rows are on other machines."""
        return 0

    def fill(self, length: int) -> None:
        """Commit rows of zeros, for measurements."""
        super().fill(length)
        self.is_blank, self.token_ids = True, [0] * length

    def take_over(self, other: KvCache) -> None:
        """Take another cache's rows, which stay where they are on the stages."""
        super().take_over(other)
        assert isinstance(other, RemoteCache)  # from the same runner
        self.token_ids, self.is_blank = list(other.token_ids), other.is_blank
        self._keep, self._fresh_ids = other._keep, other._fresh_ids
        # The stages' rows go along; if the other cache is used again, they are computed again.
        self.remote, other.remote = other.remote, self._new_remote()

    def committed(self) -> Tensor:
        """Copy the committed rows from the stages."""
        return self._read(self)

    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        """View the placeholders of the first rows."""
        return data[:, :, :, :length]

    def _compact_parts(self, parts: Sequence[Tensor], first: int, slots: Sequence[int]) -> None:
        """Do nothing: the stages move their rows."""


def placeholder_config(config: ModelConfig) -> ModelConfig:
    """Return the config of a cache with slots of one byte."""
    return replace(config, num_layers=1, blocks=(), num_kv_heads=1, head_dim=1)
