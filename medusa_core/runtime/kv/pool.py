"""One allocation for all KV caches of a target, as large as planned.

Conversations, the Verify action and measurements take their caches from it. On a CPU its pages are
mapped when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from medusa_core.errors import OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.store import KvStore, no_free_slot
from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    num_states,
    offloaded_row_bytes,
    row_bytes,
    state_rows,
    whole_blocks,
)

NewCache = Callable[[int, Tensor], KvCache]

_LEAST_ROWS = 64
_LEAST_SHARED_ROWS = 128  # fewer are copied: attention stops and goes on where shared rows end


class CachePool:
    """Allocates caches in one tensor; a cache that is garbage-collected is released.

    Attributes:
        num_rows: Number of rows, without those that recurrent states take the place of.
        nbytes: Bytes of device memory.
        row_bytes: Bytes of a row in all layers that aren't offloaded.
        evict: Drops a cache that isn't in use, and returns False if there is none.
    """

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype,
        device: torch.device,
        num_rows: int,
        cache: str = "",
        compute_itemsize: int = 4,
        offloaded: KvStore | None = None,
    ) -> None:
        """Allocate the memory.

        Args:
            config: Sizes of the target.
            dtype: Dtype of keys and values.
            device: Device of the caches.
            num_rows: Planned number of rows.
            cache: `q8_0` or `q4`, or empty for rows that aren't quantized.
            compute_itemsize: Bytes of an element of the model's activations.
            offloaded: Store of offloaded layers, whose rows take no room here; None if none are.

        Raises:
            OutOfMemoryError: The device has too little memory.
            TierError: The disk has no room for offloaded rows.
        """
        row = row_bytes(config, dtype.itemsize, cache)
        self._offloaded = offloaded
        if offloaded is not None:
            row -= offloaded_row_bytes(config, dtype.itemsize, cache, offloaded.layers)
            offloaded.allocate(dtype, device)
        self._row = row // dtype.itemsize
        self.num_rows = whole_blocks(num_rows)
        self._state_rows = state_rows(config, compute_itemsize, row)  # of each cache
        of_session = self._state_rows * row
        num = num_states(of_session, self.num_rows, config.context_tokens)
        self._all_rows = self.num_rows + num * self._state_rows
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                self._memory = torch.empty(self._all_rows * self._row, dtype=dtype, device=device)
        except RuntimeError as error:
            raise OutOfMemoryError(
                tr("No memory for a KV cache of {0} tokens.", num_rows),
                "Close other programs, or choose a shorter context or a smaller model.",
                num_tokens=num_rows,
            ) from error
        self.nbytes = self._memory.nbytes
        if offloaded is not None:
            self.nbytes += offloaded.device_bytes
        self.row_bytes = self._row * dtype.itemsize
        self.evict: Callable[[], bool] = lambda: False
        self._allocated: WeakKeyDictionary[KvCache, range] = WeakKeyDictionary()

    @property
    def free_rows(self) -> int:
        """Rows of the largest cache that can be allocated without an eviction."""
        largest = max((len(gap) for gap in self._gaps()), default=0)
        return max(0, largest - self._state_rows)

    def allocate(self, new_cache: NewCache, min_rows: int, max_rows: int = 0) -> KvCache:
        """Allocate a cache, after evicting unused ones if necessary.

        Args:
            new_cache: Makes a cache with a number of slots in given memory.
            min_rows: Rows that it needs.
            max_rows: Rows that it gets if there is room.

        Raises:
            OutOfMemoryError: Caches in use leave no room for it.
        """
        while not self._has_slot or (rows := self._find(min_rows, max_rows)) is None:
            if not self.evict():
                raise self._out_of_memory(min_rows)
        return self._allocate(new_cache, rows)

    def make_room(self, num_rows: int) -> None:
        """Evict caches until a number of contiguous rows, or the whole pool, is free.

        Raises:
            OutOfMemoryError: Caches in use leave fewer.
        """
        while self.free_rows < min(num_rows, self.num_rows):
            if not self.evict():
                raise self._out_of_memory(num_rows)

    def grown(
        self, new_cache: NewCache, cache: KvCache, min_rows: int, max_rows: int = 0
    ) -> KvCache:
        """Give a cache more rows: in place, or as a copy elsewhere.

        If old and new cache don't fit together, the old one is dropped first: the result then has
        no rows but its shared ones.

        Args:
            new_cache: Makes a cache with a number of slots in given memory.
            cache: Cache from this pool; use only the result from now on.
            min_rows: Rows that it needs, including shared ones.
            max_rows: Rows that it gets if there is room, including shared ones.

        Raises:
            OutOfMemoryError: Caches in use leave no room; the cache is unchanged.
        """
        num_shared = cache.num_shared
        min_rows, max_rows = min_rows - num_shared, max_rows - num_shared
        while True:
            if (extended := self._extended(cache, min_rows, max_rows)) is not None:
                if extended != self._allocated[cache]:
                    self._allocated[cache] = extended
                    cache.resize(self._part(extended), len(extended) - self._state_rows)
                return cache
            if (rows := self._find(min_rows, max_rows)) is not None:
                larger = self._allocate(new_cache, rows)
                larger.take_over(cache)
                self.release(cache)
                return larger
            if not self.evict():
                break
        before = self._allocated.pop(cache)
        if (rows := self._find(min_rows, max_rows)) is None:
            self._allocated[cache] = before
            raise self._out_of_memory(min_rows)
        prefix = cache.prefix
        cache.release()
        empty = self._allocate(new_cache, rows)
        if prefix is not None:
            empty.share(prefix, num_shared)
        return empty

    def trim(self, cache: KvCache) -> bool:
        """Take back the slots that a cache has beyond its committed rows.

        Returns:
            Whether it had any.
        """
        rows = self._allocated[cache]
        needed, _ = self._sizes(cache.length - cache.num_shared, 0)
        if needed >= len(rows):
            return False
        self._allocated[cache] = kept = rows[:needed]
        cache.resize(self._part(kept), len(kept) - self._state_rows)
        return True

    def split(self, new_cache: NewCache, cache: KvCache, num_rows: int) -> int:
        """Move the first rows of a cache into one that others can share, if they are enough.

        They stay in memory as long as a cache shares them, and take no further room.

        Args:
            new_cache: Makes a cache with a number of slots in given memory.
            cache: Cache from this pool.
            num_rows: Rows that another cache needs.

        Returns:
            Number of them that can be shared, a multiple of 16.
        """
        rows, num_shared = self._allocated[cache], cache.num_shared
        num_rows = num_rows // ROUND_ROWS * ROUND_ROWS
        # One block of slots is left: a cache is never empty.
        num_moved = min(num_rows - num_shared, len(rows) - ROUND_ROWS)
        if num_moved < _LEAST_SHARED_ROWS or not cache.can_share:
            return min(num_rows, num_shared)
        moved, left = rows[:num_moved], rows[num_moved:]
        self._allocated[cache] = left
        prefix = self._allocate(new_cache, moved)
        cache.split(prefix, self._part(left))
        return cache.num_shared

    def release(self, cache: KvCache) -> None:
        """Free a cache to which references may remain; they must not be used."""
        self._allocated.pop(cache, None)
        cache.release()

    @property
    def _has_slot(self) -> bool:
        """Whether the store of offloaded rows has a slot for another session."""
        store = self._offloaded
        return store is None or len(self._allocated) < store.num_sessions

    def _allocate(self, new_cache: NewCache, rows: range) -> KvCache:
        """Make a cache in a range of rows."""
        cache = new_cache(len(rows) - self._state_rows, self._part(rows))
        self._allocated[cache] = rows
        return cache

    def _part(self, rows: range) -> Tensor:
        """Memory of a range of rows."""
        return self._memory[rows.start * self._row : rows.stop * self._row]

    def _find(self, min_rows: int, max_rows: int) -> range | None:
        """Find rows for a cache: in the first gap that has all, else in the largest."""
        min_rows, max_rows = self._sizes(min_rows, max_rows)
        gaps = self._gaps()
        for gap in gaps:
            if len(gap) >= max_rows:
                return gap[:max_rows]
        largest = max(gaps, key=len, default=range(0))
        return largest if len(largest) >= min_rows else None

    def _sizes(self, min_rows: int, max_rows: int) -> tuple[int, int]:
        """Minimum and maximum rows of a cache, including its states."""
        min_rows = whole_blocks(min_rows) + self._state_rows
        return min_rows, max(whole_blocks(max_rows) + self._state_rows, min_rows)

    def _extended(self, cache: KvCache, min_rows: int, max_rows: int) -> range | None:
        """The rows of a cache and free ones after them, if these are enough."""
        rows = self._allocated[cache]
        min_rows, max_rows = self._sizes(min_rows, max_rows)
        free = next((gap.stop for gap in self._gaps() if gap.start == rows.stop), rows.stop)
        stop = min(free, rows.start + max_rows)
        return range(rows.start, stop) if stop - rows.start >= min_rows else None

    def _gaps(self) -> list[range]:
        """Free ranges of rows, ascending."""
        gaps, free = [], 0
        for rows in sorted(self._allocated.values(), key=lambda rows: rows.start):
            gaps.append(range(free, rows.start))
            free = rows.stop
        return [gap for gap in (*gaps, range(free, self._all_rows)) if gap]

    def _out_of_memory(self, min_rows: int) -> OutOfMemoryError:
        """Return the error for a cache of `min_rows` rows that doesn't fit."""
        if self._offloaded is not None and not self._has_slot:
            return no_free_slot(self._offloaded.num_sessions)
        return OutOfMemoryError(
            tr(
                "{0} tokens need room in the cache, but of {1} only {2} are free.",
                min_rows,
                self.num_rows,
                self.free_rows,
            ),
            "Wait for the answers that are being written, or load the model with a longer context.",
            num_tokens=min_rows,
            free_tokens=self.free_rows,
        )


def steps_up(num_rows: int, most: int) -> int:
    """Round a number of rows up to a power of two times 64, so that caches rarely grow."""
    rows = _LEAST_ROWS
    while rows < num_rows:
        rows *= 2
    return min(rows, most)
