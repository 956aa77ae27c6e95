"""A conversation's tokens, and their KV cache."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import steps_up
from medusa_core.speculation.drafters.source import SourceMemory, num_common
from medusa_core.speculation.tuning.chunks import Chunks

log = logging.getLogger(__name__)

_RESERVED_ROWS = 512  # at a time: few answers become as long as they may


class Session:
    """The engine's state of one conversation.

    While decoding there is one more decided token than cached rows: the last token is the root.

    Attributes:
        token_ids: Decided tokens.
        kv: The target's KV rows for them.
        chunks: Chooses the sizes of prefill chunks.
        memory: State that draft sources keep between answers, by source.
        is_preempted: The cache was released; `make_room` must be called before it is used.
        cache_salt: Only conversations with the same salt share rows; see `Generate`.
        num_forgotten: Tokens that the last `reuse` had to drop because their recurrent state
            wasn't saved.
    """

    def __init__(self, target: Target, has_one_answer: bool = False, cache_salt: str = "") -> None:
        """Start an empty conversation.

        Args:
            target: The target.
            has_one_answer: It ends with its first answer, so its cache gets no spare rows.
            cache_salt: Salt of its shared rows.
        """
        self._target = target
        self._has_one_answer = has_one_answer
        self.chunks = Chunks(target)
        self.token_ids: list[int] = []
        self.memory: SourceMemory = {}
        self.is_preempted = False
        self.cache_salt = cache_salt
        self.num_forgotten = 0
        self.kv: KvCache = target.allocate_cache(1)

    def reuse(self, prompt_ids: list[int], max_rows: int | None = None) -> int:
        """Keep the cached rows of the prompt's longest common prefix, and drop the rest.

        Args:
            prompt_ids: The whole prompt.
            max_rows: Maximum number of rows to keep; None for no limit.

        Returns:
            The number of reused rows. The last token is always computed: its hidden state and
            logits are needed, and only keys and values are cached.
        """
        common = self._num_common(prompt_ids)
        common = common if max_rows is None else min(common, max_rows)
        self.cut(common)
        self.num_forgotten = common - self.kv.length
        return self.kv.length

    def num_reusable(self, prompt_ids: Sequence[int]) -> int:
        """Length of a prompt's prefix whose rows can be copied from this conversation."""
        return self.kv.num_reusable(self._num_common(prompt_ids))

    def _num_common(self, prompt_ids: Sequence[int]) -> int:
        """Length of the common prefix with the cached tokens, without the prompt's last token."""
        return num_common(prompt_ids[:-1], self.token_ids[: self.kv.length])

    def share_prefix(self, other: Session, num_tokens: int) -> None:
        """Replace the cache by rows shared with another conversation.

        How many rows are shared depends on the kind of cache, and may be none.

        Args:
            other: A conversation of the same target.
            num_tokens: Result of `other.num_reusable`.
        """
        if not other.kv.can_share:
            return
        self.cut(0)
        caches, new_cache = self._target.caches, self._target.runner.new_cache
        num_shared = caches.split(new_cache, other.kv, num_tokens)
        if num_shared and not self.is_preempted:
            assert other.kv.prefix is not None  # made by `split`
            self.kv.share(other.kv.prefix, num_shared)
            self.token_ids[:] = other.token_ids[:num_shared]

    def copy_prefix(self, other: Session, num_tokens: int) -> None:
        """Copy another conversation's first rows, except those that are shared with it.

        Args:
            other: A conversation of the same target.
            num_tokens: Result of `other.num_reusable`; the cache has room for these rows.
        """
        self.kv.copy_prefix(other.kv, num_tokens)
        self.token_ids[:] = other.token_ids[:num_tokens]
        self._close_memory()
        for name, remembered in other.memory.items():
            try:
                self.memory[name] = remembered.fork(num_tokens)
            except OutOfMemoryError:
                log.info("the draft source %s has no room for a copy, and starts empty", name)

    def take_over(self, other: Session) -> None:
        """Move the cache of an idle conversation of the same target here."""
        self.close()
        self.kv, self.token_ids[:] = other.kv, other.token_ids
        self.memory.update(other.memory)
        self.is_preempted = other.is_preempted

    def make_room(self, num_tokens: int, num_drafts: int, shares: int = 1) -> None:
        """Allocate or grow the cache.

        Args:
            num_tokens: Rows that must fit.
            num_drafts: Rows of a tree after them, which is cut to the rows that are left.
            shares: Number of answers that share the planned rows equally.

        Raises:
            OutOfMemoryError: Running answers leave no room for it.
        """
        min_rows = num_tokens + 1  # padding of a step may write to one
        caches, new_cache = self._target.caches, self._target.runner.new_cache
        max_rows = min_rows + num_drafts
        if not self._has_one_answer:
            shared = self.kv.num_shared
            most = max(min_rows, caches.num_rows // shares)
            max_rows = shared + steps_up(max_rows - shared, most - shared)
        if self.is_preempted:
            self.kv = caches.allocate(new_cache, min_rows, max_rows)
            self.is_preempted = False
        elif min_rows + num_drafts > self.kv.capacity:
            self.kv = caches.grown(new_cache, self.kv, min_rows, max_rows)

    def preempt(self) -> None:
        """Release all rows, and keep the tokens, to prefill them again once there is room."""
        self.kv.truncate(0)
        self._target.caches.release(self.kv)
        self.is_preempted = True

    def trim(self) -> bool:
        """Release uncommitted rows. Returns whether there were any."""
        return not self.is_preempted and self._target.caches.trim(self.kv)

    def close(self) -> None:
        """Release the cache; the session can't be used afterwards."""
        self._target.caches.release(self.kv)
        self._close_memory()

    def _close_memory(self) -> None:
        """Release the state that draft sources keep between answers."""
        for remembered in self.memory.values():
            remembered.close()
        self.memory.clear()

    def cut(self, num_tokens: int) -> None:
        """Drop the tokens from `num_tokens` on, and their rows.

        With recurrent layers more is dropped: back to the last saved state.
        """
        self.kv.truncate(num_tokens)
        del self.token_ids[self.kv.length :]


class CacheReservation:
    """Grows a session's cache with its answer, which may become as long as the context."""

    def __init__(self, session: Session, max_tokens: int, tree_rows: int, shares: int) -> None:
        """Reserve nothing yet.

        Args:
            session: The answer's session.
            max_tokens: Maximum length of prompt and answer together.
            tree_rows: Maximum rows of a tree.
            shares: Number of answers that share the planned rows equally.
        """
        self._session = session
        self._max_tokens, self._tree_rows, self._shares = max_tokens, tree_rows, shares

    @property
    def is_exhausted(self) -> bool:
        """Whether the cache must grow before the next step."""
        kv = self._session.kv
        if self._session.is_preempted:
            return True
        return kv.capacity <= self._max_tokens and kv.capacity - kv.length <= self._tree_rows + 1

    def grow(self, num_decided: int) -> None:
        """Make room for the answer after `num_decided` tokens.

        Raises:
            OutOfMemoryError: Running answers leave no room for it.
        """
        rows = min(self._max_tokens - num_decided, _RESERVED_ROWS)
        self._session.make_room(num_decided + rows, self._tree_rows, self._shares)
