"""A conversation's tokens and their cache."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import steps_up
from medusa_core.speculation.drafters.source import (
    SourceMemory,
    num_common,
)
from medusa_core.speculation.tuning.chunks import Chunks

log = logging.getLogger(__name__)


class Session:
    """What the engine remembers of one conversation.

    While decoding, the decided tokens are one more than the cached rows: the last is the root.

    Attributes:
        token_ids: Tokens decided so far.
        kv: Rows of the target for them.
        chunks: Reads prompts.
        memory: What sources of drafts keep of the conversation, by their names.
        is_preempted: Its cache was given to others: it may not be used until `make_room`.
        cache_salt: Only conversations with the same one share rows; see `Generate`.
        num_forgotten: Tokens that the last `reuse` would have kept, had their states been known.
    """

    def __init__(self, target: Target, has_one_answer: bool = False, cache_salt: str = "") -> None:
        """Begin with nothing.

        Args:
            target: Answers in it.
            has_one_answer: It ends with its first answer, so that its cache takes no more rows
                than that needs: more conversations have room.
            cache_salt: See the attribute.
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

    def reuse(self, prompt_ids: list[int], most: int | None = None) -> int:
        """Keep the cached rows that begin a prompt and forget the rest.

        Args:
            prompt_ids: Token ids of the whole prompt.
            most: Rows that are kept at most; None for all.

        Returns:
            How many of its tokens need no computing. The last one always does: its state and
            scores are needed, and only keys and values are cached.
        """
        common = self._num_common(prompt_ids)
        common = common if most is None else min(common, most)
        self.cut(common)
        self.num_forgotten = common - self.kv.length
        return self.kv.length

    def num_reusable(self, prompt_ids: Sequence[int]) -> int:
        """Number of a prompt's first tokens whose rows can be copied from here."""
        return self.kv.num_reusable(self._num_common(prompt_ids))

    def _num_common(self, prompt_ids: Sequence[int]) -> int:
        """Cached tokens that begin a prompt, except its last, which is always computed."""
        return num_common(prompt_ids[:-1], self.token_ids[: self.kv.length])

    def share_prefix(self, other: Session, num_tokens: int) -> None:
        """Replace what is cached by rows that are another conversation's, too.

        As many as caches of this kind can share, which may be none.

        Args:
            other: A conversation of the same target.
            num_tokens: As `other.num_reusable` returns it.
        """
        if not other.kv.can_share:
            return
        self.cut(0)
        caches, new_cache = self._target.caches, self._target.runner.new_cache
        num_shared = caches.split(new_cache, other.kv, num_tokens)
        if num_shared and not self.is_preempted:
            assert other.kv.prefix is not None  # of `split`
            self.kv.share(other.kv.prefix, num_shared)
            self.token_ids[:] = other.token_ids[:num_shared]

    def copy_prefix(self, other: Session, num_tokens: int) -> None:
        """Copy the rows that another conversation begins with, and aren't shared with it.

        Args:
            other: A conversation of the same target, which stays as it is; see `share_prefix`.
            num_tokens: As `other.num_reusable` returns it; they fit into the cache.
        """
        self.kv.copy_prefix(other.kv, num_tokens)
        self.token_ids[:] = other.token_ids[:num_tokens]
        self._close_memory()
        for name, remembered in other.memory.items():
            try:
                self.memory[name] = remembered.fork(num_tokens)
            except OutOfMemoryError:
                log.info("%s has no room for a copy, and begins anew", name)

    def take_over(self, other: Session) -> None:
        """Go on with another conversation's cache, which is closed by it.

        Args:
            other: A conversation of the same target that nobody uses.
        """
        self.close()
        self.kv, self.token_ids[:] = other.kv, other.token_ids
        self.memory.update(other.memory)
        self.is_preempted = other.is_preempted

    def make_room(self, num_tokens: int, num_drafts: int, shares: int = 1) -> None:
        """Let the cache hold that many rows.

        Args:
            num_tokens: Rows that there must be room for.
            num_drafts: Rows of a tree behind them, which gets what is left.
            shares: The cache may grow to one of so many equal parts of what was planned.

        Raises:
            OutOfMemoryError: Answers that are being written leave no room for it.
        """
        least = num_tokens + 1  # a step may pad into one
        caches, new_cache = self._target.caches, self._target.runner.new_cache
        wanted = least + num_drafts
        if not self._has_one_answer:
            shared = self.kv.num_shared
            most = max(least, caches.num_rows // shares)
            wanted = shared + steps_up(wanted - shared, most - shared)
        if self.is_preempted:
            self.kv = caches.allocate(new_cache, least, wanted)
            self.is_preempted = False
        elif least + num_drafts > self.kv.capacity:
            self.kv = caches.grown(new_cache, self.kv, least, wanted)

    def preempt(self) -> None:
        """Give all rows back; the tokens stay, to be read again once there is room."""
        self.kv.truncate(0)
        self._target.caches.release(self.kv)
        self.is_preempted = True

    def trim(self) -> bool:
        """Give back the rows that nothing is committed to. Returns whether there were any."""
        return not self.is_preempted and self._target.caches.trim(self.kv)

    def close(self) -> None:
        """Give the cache back; whoever still holds the session may not use it any more."""
        self._target.caches.release(self.kv)
        self._close_memory()

    def _close_memory(self) -> None:
        for remembered in self.memory.values():
            remembered.close()
        self.memory.clear()

    def cut(self, num_tokens: int) -> None:
        """Forget the tokens from `num_tokens` on, and their rows; where states hold more, those."""
        self.kv.truncate(num_tokens)
        del self.token_ids[self.kv.length :]
