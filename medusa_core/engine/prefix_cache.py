"""Prefix cache: a prompt begins with the rows of whichever conversation shares most of it.

Automatic prefix caching as in vLLM and SGLang (Zheng et al. 2024, "SGLang", section 3), with
conversations in the place of blocks: all of them together are the cache.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from medusa_core.engine.session import Session
from medusa_core.engine.sessions import Sessions
from medusa_core.errors import OutOfMemoryError

log = logging.getLogger(__name__)


class PrefixMatch(NamedTuple):
    """A conversation whose first rows are those of a prompt.

    Attributes:
        session: The conversation.
        num_tokens: Tokens of the prompt that it has rows of.
    """

    session: Session
    num_tokens: int


class PrefixCache:
    """Gives a prompt the longest prefix that any conversation has cached."""

    def __init__(self, sessions: Sessions) -> None:
        """Look for prefixes in some conversations.

        Args:
            sessions: The conversations; those that are being answered count, too.
        """
        self._sessions = sessions

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
        """
        match = self.find(session, prompt_ids)
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
