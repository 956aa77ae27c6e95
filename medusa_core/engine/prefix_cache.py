"""Prefix cache: a prompt begins with the rows of whichever conversation shares most of it.

Automatic prefix caching as in vLLM and SGLang (Zheng et al. 2024, "SGLang", section 3), with
conversations in the place of blocks: all of them together are the cache.
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

_LEAST_PENDING = 256  # tokens that are worth waiting for until another answer has read them


class PrefixMatch(NamedTuple):
    """A conversation whose first rows are those of a prompt.

    Attributes:
        session: The conversation.
        num_tokens: Tokens of the prompt that it has rows of.
    """

    session: Session
    num_tokens: int


class PrefixPendingError(Exception):
    """Another answer is reading what a prompt begins with: begin when it has.

    Attributes:
        prefix: That answer's conversation, and the number of tokens that both prompts begin with.
    """

    def __init__(self, prefix: PrefixMatch) -> None:
        super().__init__()
        self.prefix = prefix


def _nothing_is_read() -> Mapping[str, Sequence[int]]:
    return {}


class PrefixCache:
    """Gives a prompt the longest prefix that any conversation has cached."""

    def __init__(
        self,
        sessions: Sessions,
        reading: Callable[[], Mapping[str, Sequence[int]]] = _nothing_is_read,
    ) -> None:
        """Look for prefixes in some conversations.

        Args:
            sessions: The conversations; those that are being answered count, too.
            reading: Returns the prompts that are being read, by the ids of their sessions.
        """
        self._sessions, self._reading = sessions, reading

    def is_over(self, pending: PrefixMatch) -> bool:
        """Whether what was waited for has been read, or isn't any more."""
        is_read = pending.session.kv.length >= pending.num_tokens
        return is_read or all(session is not pending.session for session, _ in self._readers())

    def _readers(self) -> list[tuple[Session, Sequence[int]]]:
        found = ((self._sessions.get(name), ids) for name, ids in self._reading().items())
        return [(session, ids) for session, ids in found if session is not None]

    def _check_pending(self, session: Session, prompt_ids: Sequence[int], num_cached: int) -> None:
        """Refuse to read what another answer is reading.

        Raises:
            PrefixPendingError: It is much.
        """
        for other, ids in self._readers():
            if other is session or other.cache_salt != session.cache_salt:
                continue
            common = num_common(prompt_ids[:-1], list(ids))
            if other.kv.length < common and common - num_cached >= _LEAST_PENDING:
                raise PrefixPendingError(PrefixMatch(other, common))

    def find(self, session: Session, prompt_ids: Sequence[int]) -> PrefixMatch | None:
        """Find who shares more of a prompt than its own conversation does.

        Args:
            session: The prompt's own conversation. Only conversations with its `cache_salt` count.
            prompt_ids: The whole prompt.

        Returns:
            The conversation with the longest prefix; None where the own one has as much.
        """
        best, longest = None, session.num_reusable(prompt_ids)
        for other in self._sessions.all:
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
        """Make room for a prompt that begins with the longest cached prefix.

        Args:
            session: The prompt's conversation. It shares the rows, or gets a copy.
            prompt_ids: The whole prompt.
            grow: Lets the conversation's cache hold the prompt.
            may_take: Where there is no room for a copy, take the whole cache of the other
                conversation, if that is idle.

        Raises:
            OutOfMemoryError: Answers that are being written leave no room for it.
            PrefixPendingError: Another answer is reading much of the prompt; nothing was changed.
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
