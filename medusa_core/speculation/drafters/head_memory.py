"""State of heads with their own KV cache, for one conversation."""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from medusa_core.errors import OutOfMemoryError
from medusa_core.heads.cached import CachedHeads
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import steps_up

log = logging.getLogger(__name__)

MAX_CHUNK = 64


class HeadMemory(ABC):
    """The heads' cache for one conversation; rows are computed when they are needed.

    Attributes:
        kv: The cache.
        token_ids: Token of each position whose features are known.
    """

    def __init__(self, heads: CachedHeads) -> None:
        """Allocate a small cache, which grows later."""
        assert heads.caches is not None  # reserved with the target
        self._heads, self._caches = heads, heads.caches
        self.kv: KvCache = self._caches.allocate(heads.new_cache, 1)
        self.token_ids: list[int] = []
        self._waiting: list[Tensor] = []  # features of the last positions, without rows so far
        self._num_waiting = 0

    @abstractmethod
    def compute(self, features: Tensor, place: int) -> Tensor:
        """Compute the rows of consecutive positions.

        Args:
            features: Features of each position. [n, features]
            place: The first position.

        Returns:
            The heads' hidden states, of the last position at least. [1 or n, hidden]
        """

    def fork(self, num_tokens: int) -> Self:
        """See `Remembered`."""
        num_rows = self.num_places - self._num_waiting
        num_lost = num_rows - self.kv.length  # the first rows, which were dropped
        kept = max(0, min(num_tokens, num_rows) - num_lost)
        fork = copy.copy(self)
        fork.kv = self._caches.allocate(self._heads.new_cache, kept + 1)
        fork.kv.copy_prefix(self.kv, kept)
        fork.token_ids = self.token_ids[: max(num_lost + kept, num_tokens)]
        num_waiting = max(0, len(fork.token_ids) - num_rows)
        fork._num_waiting = num_waiting
        fork._waiting = [torch.cat(self._waiting)[:num_waiting]] if num_waiting else []
        return fork

    def close(self) -> None:
        """Release the cache."""
        self._caches.release(self.kv)

    @property
    def num_places(self) -> int:
        """Number of known positions."""
        return len(self.token_ids)

    @property
    def num_waiting(self) -> int:
        """Number of positions without a row."""
        return self._num_waiting

    def keep(self, length: int) -> None:
        """Drop the positions from `length` on."""
        num_rows = self.num_places - self._num_waiting
        if length < num_rows:
            num_lost = num_rows - self.kv.length  # rows that were dropped
            self.kv.truncate(max(0, length - num_lost))
        if self._num_waiting and length < self.num_places:
            waiting = torch.cat(self._waiting)[: max(0, length - num_rows)]
            self._waiting, self._num_waiting = [waiting], len(waiting)
        del self.token_ids[length:]

    def add(self, features: Tensor, token_ids: Sequence[int]) -> None:
        """Add positions with the target's features and their tokens."""
        self._waiting.append(features)
        self._num_waiting += len(features)
        self.token_ids += token_ids

    @property
    def has_waiting(self) -> bool:
        """Whether positions are without rows."""
        return self._num_waiting > 0

    def catch_up(self, num_more: int) -> Tensor | None:
        """Compute the waiting rows, with room for `num_more` rows of drafts if possible.

        If other answers hold the memory for the rows themselves, they go on waiting.

        Returns:
            The heads' hidden state of the last position, [1, hidden]; None if none was computed.
        """
        if not self._num_waiting or not self._make_room(self._num_waiting, num_more):
            return None
        features = torch.cat(self._waiting)
        first = self.num_places - self._num_waiting
        self._waiting, self._num_waiting = [], 0
        state: Tensor | None = None
        for start in range(0, len(features), MAX_CHUNK):
            part = features[start : start + MAX_CHUNK]
            state = self.compute(part, first + start)[-1:]
        return state

    def _make_room(self, num_rows: int, num_more: int) -> bool:
        """Grow the cache if necessary; False if other answers hold the memory."""
        min_rows = self.kv.length + num_rows
        if min_rows + num_more <= self.kv.capacity:
            return True
        max_rows = steps_up(min_rows + num_more, self._caches.num_rows)
        try:
            self.kv = self._caches.grown(self._heads.new_cache, self.kv, min_rows, max_rows)
        except OutOfMemoryError:
            log.info("the heads have no room, and draft nothing")
            return False
        return True
