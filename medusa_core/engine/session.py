"""A conversation's tokens and their cache."""

from __future__ import annotations

from medusa_core.kv.cache import KvCache
from medusa_core.kv.size import whole_capacity
from medusa_core.target import Target

_BUCKET = 256  # caches grow in steps, so that a longer answer rarely copies
_SMALL_BYTES = 256 << 20


class Session:
    """What the engine remembers of one conversation.

    While decoding, the decided tokens are one more than the cached rows: the last is the root.

    Attributes:
        token_ids: Tokens decided so far.
        kv: Rows of the target for them.
    """

    def __init__(self, target: Target) -> None:
        self._whole = whole_capacity(target.config.context_tokens)
        self.token_ids: list[int] = []
        self.kv: KvCache = target.runner.new_cache(_first_capacity(target))

    def reuse(self, prompt_ids: list[int]) -> int:
        """Keep the cached rows that begin a prompt and forget the rest.

        Args:
            prompt_ids: Token ids of the whole prompt.

        Returns:
            How many of its tokens need no computing. The last one always does: its state and
            scores are needed, and only keys and values are cached.
        """
        common = _num_common(prompt_ids[:-1], self.token_ids[: self.kv.length])
        self.cut(common)
        return common

    def make_room(self, num_tokens: int) -> None:
        """Let the cache hold that many rows.

        Raises:
            OutOfMemoryError: The device has no room for it.
        """
        if num_tokens > self.kv.capacity:
            in_steps = -(-num_tokens // _BUCKET) * _BUCKET
            # Never beyond what was planned, but for a tree that is larger than planned.
            self.kv.grow(max(num_tokens, min(in_steps, self._whole)))

    def cut(self, num_tokens: int) -> None:
        """Forget the tokens from `num_tokens` on, and their rows."""
        del self.token_ids[num_tokens:]
        self.kv.truncate(num_tokens)


def _num_common(a: list[int], b: list[int]) -> int:
    """How many tokens two lists have in common before they part."""
    same, bound = 0, min(len(a), len(b)) + 1
    while bound - same > 1:  # the first `same` are the same, the first `bound` aren't
        middle = same + bound >> 1 if same else bound - 1
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            bound = middle
    return same


def _first_capacity(target: Target) -> int:
    """Room for the whole context where it was planned for, or where it costs nothing.

    A card's memory was planned, and growing would need the old and the new cache at once. A CPU
    takes pages when they are used.
    """
    is_cheap = target.whole_cache_bytes <= _SMALL_BYTES
    if is_cheap or target.precision.device.type == "cuda":
        return whole_capacity(target.config.context_tokens)
    return _BUCKET
