"""One reserve for all caches of a target: as large as was planned, and never larger.

Conversations, Verify and measurements borrow from it. A CPU takes its pages when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from medusa_core.errors import OutOfMemoryError
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.store import RowStore, lacking_slots
from medusa_core.runtime.kv.size import (
    ROUND_ROWS,
    num_states,
    offloaded_row_bytes,
    row_bytes,
    state_rows,
)

NewCache = Callable[[int, Tensor], KvCache]

_LEAST_ROWS = 64
_LEAST_SHARED_ROWS = 128  # fewer are copied: attention stops and goes on where shared rows end


class CachePool:
    """Allocates caches in one piece of memory; a cache that is forgotten is released.

    Attributes:
        num_rows: Rows in all, beside those that states take the place of.
        nbytes: Bytes of the device in all.
        row_bytes: Bytes of a row, of layers whose rows lie here.
        evict: Asked to forget a cache that nobody uses now; says False where there is none.
    """

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype,
        device: torch.device,
        num_rows: int,
        cache: str = "",
        compute_itemsize: int = 4,
        offloaded: RowStore | None = None,
    ) -> None:
        """Take the memory.

        Args:
            config: Sizes of the target.
            dtype: Of keys and values.
            device: Where they lie.
            num_rows: Rows that were planned.
            cache: How rows are kept, `q4`; empty for plain numbers.
            compute_itemsize: Bytes of a number that the model computes in.
            offloaded: Home of the rows of some layers, which take no room here; None where all do.

        Raises:
            OutOfMemoryError: The device has no room for them.
            TierError: The disk has no room for what is to lie there.
        """
        row = row_bytes(config, dtype.itemsize, cache)
        self._offloaded = offloaded
        if offloaded is not None:
            row -= offloaded_row_bytes(config, dtype.itemsize, cache, offloaded.layers)
            offloaded.lay_out(dtype, device)
        self._row = row // dtype.itemsize
        self.num_rows = _rounded_up(num_rows)
        self._state_rows = state_rows(config, compute_itemsize, row)  # of each cache
        of_session = self._state_rows * row
        num = num_states(of_session, self.num_rows, config.context_tokens)
        self._all_rows = self.num_rows + num * self._state_rows
        try:
            with torch.inference_mode(False):  # else only inference could write into it
                self._memory = torch.empty(self._all_rows * self._row, dtype=dtype, device=device)
        except RuntimeError as error:
            raise OutOfMemoryError(
                f"No memory for a KV cache of {num_rows} tokens.",
                "Close other programs, or choose a shorter context or a smaller model.",
                num_tokens=num_rows,
            ) from error
        self.nbytes = self._memory.nbytes
        if offloaded is not None:
            self.nbytes += offloaded.device_bytes
        self.row_bytes = self._row * dtype.itemsize
        self.evict: Callable[[], bool] = _nobody
        self._allocated: WeakKeyDictionary[KvCache, range] = WeakKeyDictionary()

    @property
    def free_rows(self) -> int:
        """Rows of the largest cache that could be lent now."""
        largest = max((len(gap) for gap in self._gaps()), default=0)
        return max(0, largest - self._state_rows)

    def allocate(self, new_cache: NewCache, least: int, wanted: int = 0) -> KvCache:
        """Allocate a cache; caches that nobody uses are evicted for it.

        Args:
            new_cache: Makes a cache of so many slots in a piece of memory.
            least: Rows that it must have.
            wanted: Rows that it gets where there is room.

        Raises:
            OutOfMemoryError: Caches in use leave no room for it.
        """
        while not self._has_slot or (rows := self._find(least, wanted)) is None:
            if not self.evict():
                raise self._lack(least)
        return self._allocate(new_cache, rows)

    def make_room(self, num_rows: int) -> None:
        """See that so many rows in one piece are free, or all that the pool has.

        Raises:
            OutOfMemoryError: Caches in use leave fewer.
        """
        while self.free_rows < min(num_rows, self.num_rows):
            if not self.evict():
                raise self._lack(num_rows)

    def grown(self, new_cache: NewCache, cache: KvCache, least: int, wanted: int = 0) -> KvCache:
        """A lent cache with more rows: in its place, or a copy elsewhere.

        It has nothing but its shared rows where it had to go before there was room for the new one.

        Args:
            new_cache: As in `allocate`.
            cache: The cache. Only what is returned may be used from now on.
            least: As in `allocate`.
            wanted: As in `allocate`.

        Raises:
            OutOfMemoryError: Caches in use leave no room; the cache is as it was.
        """
        num_shared = cache.num_shared
        least, wanted = least - num_shared, wanted - num_shared
        while True:
            here = self._behind(cache, least, wanted)
            if here is not None:
                if here != self._allocated[cache]:
                    self._allocated[cache] = here
                    cache.stretch(self._part(here), len(here) - self._state_rows)
                return cache
            if (rows := self._find(least, wanted)) is not None:
                larger = self._allocate(new_cache, rows)
                larger.take_over(cache)
                self.release(cache)
                return larger
            if not self.evict():
                break
        before = self._allocated.pop(cache)
        if (rows := self._find(least, wanted)) is None:
            self._allocated[cache] = before
            raise self._lack(least)
        prefix = cache.prefix
        cache.release()
        empty = self._allocate(new_cache, rows)
        if prefix is not None:
            empty.share(prefix, num_shared)
        return empty

    def trim(self, cache: KvCache) -> bool:
        """Give back the rows that a cache has beyond its committed ones.

        Returns:
            Whether it had any.
        """
        rows = self._allocated[cache]
        needed, _ = self._sizes(cache.length - cache.num_shared, 0)
        if needed >= len(rows):
            return False
        self._allocated[cache] = kept = rows[:needed]
        cache.stretch(self._part(kept), len(kept) - self._state_rows)
        return True

    def split(self, new_cache: NewCache, cache: KvCache, num_rows: int) -> int:
        """Let the first rows of a cache lie in one that others can share, where that pays.

        They stay in memory as long as a cache shares them. Nothing else takes room for it.

        Args:
            new_cache: As in `allocate`.
            cache: A cache that can share.
            num_rows: Rows that are wanted by another one.

        Returns:
            How many of them can be shared: a multiple of 16.
        """
        rows, num_shared = self._allocated[cache], cache.num_shared
        num_rows = num_rows // ROUND_ROWS * ROUND_ROWS
        # There is always a slot left.
        num_moved = min(num_rows - num_shared, len(rows) - ROUND_ROWS)
        if num_moved < _LEAST_SHARED_ROWS or not cache.can_share:
            return min(num_rows, num_shared)
        moved, left = rows[:num_moved], rows[num_moved:]
        self._allocated[cache] = left
        prefix = self._allocate(new_cache, moved)
        cache.split(prefix, self._part(left))
        return cache.num_shared

    def release(self, cache: KvCache) -> None:
        """Take a cache back that somebody may still hold, but doesn't use."""
        self._allocated.pop(cache, None)
        cache.release()

    @property
    def _has_slot(self) -> bool:
        """Is there room for another session's rows below the device?"""
        store = self._offloaded
        return store is None or len(self._allocated) < store.num_sessions

    def _allocate(self, new_cache: NewCache, rows: range) -> KvCache:
        cache = new_cache(len(rows) - self._state_rows, self._part(rows))
        self._allocated[cache] = rows
        return cache

    def _part(self, rows: range) -> Tensor:
        return self._memory[rows.start * self._row : rows.stop * self._row]

    def _find(self, least: int, wanted: int) -> range | None:
        """Where a cache goes: into the first gap that is large enough, else into the largest."""
        least, wanted = self._sizes(least, wanted)
        gaps = self._gaps()
        for gap in gaps:
            if len(gap) >= wanted:
                return gap[:wanted]
        largest = max(gaps, key=len, default=range(0))
        return largest if len(largest) >= least else None

    def _sizes(self, least: int, wanted: int) -> tuple[int, int]:
        """Rows that a cache takes with its states: at least, and where there is room."""
        least = _rounded_up(least) + self._state_rows
        return least, max(_rounded_up(wanted) + self._state_rows, least)

    def _behind(self, cache: KvCache, least: int, wanted: int) -> range | None:
        """The cache's rows with free ones behind them, if these are enough."""
        rows = self._allocated[cache]
        least, wanted = self._sizes(least, wanted)
        free = next((gap.stop for gap in self._gaps() if gap.start == rows.stop), rows.stop)
        stop = min(free, rows.start + wanted)
        return range(rows.start, stop) if stop - rows.start >= least else None

    def _gaps(self) -> list[range]:
        """What isn't lent, in order."""
        gaps, free = [], 0
        for rows in sorted(self._allocated.values(), key=lambda rows: rows.start):
            gaps.append(range(free, rows.start))
            free = rows.stop
        return [gap for gap in (*gaps, range(free, self._all_rows)) if gap]

    def _lack(self, least: int) -> OutOfMemoryError:
        if self._offloaded is not None and not self._has_slot:
            return lacking_slots(self._offloaded.num_sessions)
        return OutOfMemoryError(
            f"{least} tokens need room in the cache, but of {self.num_rows} only "
            f"{self.free_rows} are free.",
            "Wait for the answers that are being written, or load the model with a longer context.",
            num_tokens=least,
            free_tokens=self.free_rows,
        )


def steps_up(num_rows: int, most: int) -> int:
    """Rows to ask for where so many are needed: caches double, so that they rarely grow."""
    rows = _LEAST_ROWS
    while rows < num_rows:
        rows *= 2
    return min(rows, most)


def _rounded_up(num_rows: int) -> int:
    return -(-num_rows // ROUND_ROWS) * ROUND_ROWS


def _nobody() -> bool:
    """There is no cache that could be evicted."""
    return False
