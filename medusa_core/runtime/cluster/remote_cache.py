"""A session's cache whose rows lie with the stages: its places, and what stands in them."""

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
PLACE_DTYPE = torch.uint8
_CPU = torch.device("cpu")


class Remote:
    """What the stages call a cache; they forget it when nobody here remembers it.

    Attributes:
        cache_id: Its number.
        epoch: Among which division of layers the stages hold it; −1 before they do.
    """

    def __init__(self, numbers: count[int], forgotten: list[int]) -> None:
        self.cache_id = next(numbers)
        self.epoch = NO_EPOCH
        finalize(self, forgotten.append, self.cache_id)


class RemoteCache(KvCache):
    """Knows of every row its token, so that a stage that comes anew can be sent them again.

    Attributes:
        token_ids: Tokens of the committed rows.
        is_blank: It holds rows of nothing.
        remote: What the stages call it.
    """

    def __init__(
        self,
        config: ModelConfig,
        new_remote: Callable[[], Remote],
        read: Callable[[RemoteCache], Tensor],
        capacity: int,
        memory: Tensor | None = None,
    ) -> None:
        """Have places for rows.

        Args:
            config: Of the target.
            new_remote: A name that the stages don't know.
            read: Asks the stages what they hold of this cache.
            capacity: Slots.
            memory: See `KvCache`.
        """
        super().__init__(place_config(config), PLACE_DTYPE, _CPU, capacity, memory=memory)
        self.token_ids: list[int] = []
        self.is_blank = False
        self.remote = new_remote()
        self._new_remote = new_remote
        self._read = read
        self._fresh_ids: Sequence[int] = ()
        self._keep: tuple[int, ...] = ()

    def open(self, token_ids: Sequence[int]) -> None:
        """Reserve rows for these tokens, which the next pass computes."""
        self.reserve(len(token_ids))
        self._fresh_ids = token_ids

    def order(self) -> CacheRequest:
        """What the stages aren't told yet."""
        return CacheRequest(
            self.remote.cache_id, self._keep, self.length, self.capacity, self.is_blank
        )

    def sent(self) -> None:
        """The stages know all of it."""
        self._keep = ()

    def begin_again(self) -> CacheRequest:
        """Let the stages hold nothing of it, under another name; returns how they begin."""
        self.remote = self._new_remote()
        self._keep = ()
        return self.order() if self.is_blank else replace(self.order(), length=0)

    def is_back(self, epoch: int, keep: tuple[int, ...]) -> None:
        """The stages have computed its rows.

        Args:
            epoch: With which division of layers.
            keep: Rows of their last pass, which they aren't told to keep yet.
        """
        self.remote.epoch = epoch
        self._keep = keep

    def commit(self, slots: Sequence[int]) -> None:
        super().commit(slots)
        self._keep = tuple(slots)
        self.token_ids += [self._fresh_ids[slot] for slot in slots]

    def truncate(self, length: int) -> None:
        super().truncate(length)
        del self.token_ids[self.length :]

    def num_reusable(self, num_rows: int) -> int:
        """None: the rows lie with the stages."""
        return 0

    def fill(self, length: int) -> None:
        super().fill(length)
        self.is_blank, self.token_ids = True, [0] * length

    def take_over(self, other: KvCache) -> None:
        super().take_over(other)
        assert isinstance(other, RemoteCache)  # from the same runner
        self.token_ids, self.is_blank = list(other.token_ids), other.is_blank
        self._keep, self._fresh_ids = other._keep, other._fresh_ids
        # The stages' rows go with it; whoever uses the other one again has them computed anew.
        self.remote, other.remote = other.remote, self._new_remote()

    def committed(self) -> Tensor:
        return self._read(self)

    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        return data[:, :, :, :length]

    def _compact_parts(self, parts: Sequence[Tensor], first: int, slots: Sequence[int]) -> None:
        """There is nothing here to move."""


def place_config(config: ModelConfig) -> ModelConfig:
    """Sizes of a cache that has places alone."""
    return replace(config, num_layers=1, blocks=(), num_kv_heads=1, head_dim=1)
