"""Prefix cache: reuse the KV rows of the conversation with the longest common prefix.

Automatic prefix caching as in vLLM and SGLang (Zheng et al. 2024, "SGLang", section 3), with
whole conversations instead of blocks: their caches together are the prefix cache.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from medusa_core.engine.session import Session
from medusa_core.engine.sessions import Sessions
from medusa_core.errors import OutOfMemoryError
from medusa_core.speculation.drafters.source import num_common

log = logging.getLogger(__name__)

_MIN_PENDING = 256  # tokens that are worth waiting for while another answer prefills them


class PrefixMatch(NamedTuple):
    """A conversation that has cached a prefix of a prompt.

    Attributes:
        session: The conversation.
        num_tokens: Length of the cached prefix.
    """

    session: Session
    num_tokens: int


class PrefixPendingError(Exception):
    """Another request is prefilling a prefix of the prompt; retry once it is cached.

    Attributes:
        prefix: Conversation of the other request, and length of the common prefix.
    """

    def __init__(self, prefix: PrefixMatch) -> None:
        super().__init__()
        self.prefix = prefix


class PrefixCache:
    """Finds the longest cached prefix of a prompt, and reuses its rows."""

    def __init__(
        self,
        sessions: Sessions,
        prefilling: Callable[[], Mapping[str, Sequence[int]]] = dict,
    ) -> None:
        """Search the caches of some conversations.

        Args:
            sessions: The conversations, including those that are being answered.
            prefilling: Returns the prompts that are being prefilled, by session id.
        """
        self._sessions, self._prefilling = sessions, prefilling

    def is_over(self, pending: PrefixMatch) -> bool:
        """Whether a pending prefix is cached now, or its prefill has stopped."""
        is_read = pending.session.kv.length >= pending.num_tokens
        return is_read or all(
            session is not pending.session for session, _ in self._running_prefills()
        )

    def _running_prefills(self) -> list[tuple[Session, Sequence[int]]]:
        """Sessions whose prompts are being prefilled, with these prompts."""
        found = ((self._sessions.get(name), ids) for name, ids in self._prefilling().items())
        return [(session, ids) for session, ids in found if session is not None]

    def _check_pending(self, session: Session, prompt_ids: Sequence[int], num_cached: int) -> None:
        """Refuse to prefill tokens that another request is prefilling.

        Raises:
            PrefixPendingError: These are at least `_MIN_PENDING` tokens.
        """
        for other, ids in self._running_prefills():
            if other is session or other.cache_salt != session.cache_salt:
                continue
            common = num_common(prompt_ids[:-1], list(ids))
            if other.kv.length < common and common - num_cached >= _MIN_PENDING:
                raise PrefixPendingError(PrefixMatch(other, common))

    def find(self, session: Session, prompt_ids: Sequence[int]) -> PrefixMatch | None:
        """Find a conversation that has cached more of a prompt than its own has.

        Args:
            session: The prompt's own conversation. Only conversations with its `cache_salt` count.
            prompt_ids: The whole prompt.

        Returns:
            The longest match in another conversation; None if its own match is as long.
        """
        best, longest = None, session.num_reusable(prompt_ids)
        for other in self._sessions.values():
            if other is not session and other.cache_salt == session.cache_salt:
                num_tokens = other.num_reusable(prompt_ids)
                if num_tokens > longest:
                    best, longest = other, num_tokens
        return None if best is None else PrefixMatch(best, longest)

    def make_room(
        self,
        session: Session,
        prompt_ids: Sequence[int],
        grow: Callable[[], None],
        may_take: bool = True,
    ) -> None:
        """Allocate the cache for a prompt, with the rows of its longest cached prefix.

        Args:
            session: The prompt's conversation, which shares the rows or gets a copy of them.
            prompt_ids: The whole prompt.
            grow: Enlarges the conversation's cache to the length of the prompt.
            may_take: If there is no room for a copy, move the cache of the other conversation,
                provided that it is idle.

        Raises:
            OutOfMemoryError: Running requests leave no room for the prompt.
            PrefixPendingError: Another request is prefilling the prefix; nothing was changed.
        """
        match = self.find(session, prompt_ids)
        num_cached = session.num_reusable(prompt_ids) if match is None else match.num_tokens
        self._check_pending(session, prompt_ids, num_cached)
        if match is None:
            grow()
            return
        try:
            with self._sessions.kept(match.session):
                session.share_prefix(match.session, match.num_tokens)
                grow()
                session.copy_prefix(match.session, match.num_tokens)
        except OutOfMemoryError:
            if may_take and not session.kv.num_shared and self._sessions.remove_idle(match.session):
                session.take_over(match.session)
                session.cut(match.num_tokens)
            grow()
        log.info("%d tokens are reused from another conversation", match.num_tokens)
