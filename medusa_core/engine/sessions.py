"""Conversations with cached rows, in least-recently-used order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

from medusa_core.engine.session import Session

log = logging.getLogger(__name__)


class Sessions(dict[str, Session]):
    """Sessions by id, the most recently used last.

    A session is popped when an answer starts, so that it isn't evicted for its own answer, and set
    again, which makes it the last.
    """

    def __init__(self, busy_ids: Callable[[], Container[str]]) -> None:
        """Start empty.

        Args:
            busy_ids: Returns the ids of sessions with running answers, which aren't evicted.
        """
        super().__init__()
        self._busy_ids = busy_ids
        self._kept: Session | None = None

    def close(self, session_id: str) -> None:
        """Remove a session and release its cache, if there is one."""
        session = self.pop(session_id, None)
        if session is not None:
            session.close()

    @contextmanager
    def kept(self, session: Session) -> Iterator[None]:
        """Protect a session from eviction while its rows are copied."""
        self._kept = session
        try:
            yield
        finally:
            self._kept = None

    def remove_idle(self, session: Session) -> bool:
        """Remove a session without a running answer; returns whether there was one."""
        busy = self._busy_ids()
        for session_id, other in self.items():
            if other is session and session_id not in busy:
                del self[session_id]
                return True
        return False

    def evict(self) -> bool:
        """Free rows of idle sessions: uncommitted ones, else the least recently used cache.

        Returns:
            Whether there were any.
        """
        return self.trim() or self.evict_idle()

    def evict_idle(self) -> bool:
        """Free the least recently used idle cache. Returns whether there was one."""
        busy = self._busy_ids()
        for session_id, session in self.items():
            if session_id not in busy and session is not self._kept:
                log.info("the cache of an idle session is evicted")
                self.close(session_id)
                return True
        return False

    def trim(self) -> bool:
        """Free the uncommitted rows of idle sessions.

        Returns:
            Whether rows have become free.
        """
        busy = self._busy_ids()
        idle = [one for session_id, one in self.items() if session_id not in busy]
        return sum(session.trim() for session in idle) > 0
