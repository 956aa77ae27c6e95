"""Conversations with cached rows, in least-recently-used order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

from medusa_core.engine.session import Session

log = logging.getLogger(__name__)


class Sessions:
    """Sessions by id, the most recently used last."""

    def __init__(self, busy_ids: Callable[[], Container[str]]) -> None:
        """Start empty.

        Args:
            busy_ids: Returns the ids of sessions with running answers, which aren't evicted.
        """
        self._busy_ids = busy_ids
        self._by_id: dict[str, Session] = {}
        self._kept: Session | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The sessions' ids."""
        return tuple(self._by_id)

    @property
    def all(self) -> tuple[Session, ...]:
        """The sessions."""
        return tuple(self._by_id.values())

    def get(self, session_id: str) -> Session | None:
        """The session of an id, or None."""
        return self._by_id.get(session_id)

    def pop(self, session_id: str) -> Session | None:
        """Remove and return a session, so that it can't be evicted; None if there is none."""
        return self._by_id.pop(session_id, None)

    def put(self, session_id: str, session: Session) -> None:
        """Store a session as the most recently used."""
        self._by_id[session_id] = session

    def close(self, session_id: str) -> None:
        """Remove a session and release its cache, if there is one."""
        session = self.pop(session_id)
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
        session_id = self._idle_id(session)
        return session_id is not None and self.pop(session_id) is not None

    def evict(self) -> bool:
        """Free rows of idle sessions: uncommitted ones, else the least recently used cache.

        Returns:
            Whether there were any.
        """
        return self.trim() or self.evict_idle()

    def evict_idle(self) -> bool:
        """Free the least recently used idle cache. Returns whether there was one."""
        busy = self._busy_ids()
        for session_id, session in self._by_id.items():
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
        idle = [one for session_id, one in self._by_id.items() if session_id not in busy]
        return sum(session.trim() for session in idle) > 0

    def clear(self) -> None:
        """Drop all sessions when their model is unloaded."""
        self._by_id.clear()

    def _idle_id(self, session: Session) -> str | None:
        busy = self._busy_ids()
        return next(
            (one for one, held in self._by_id.items() if held is session and one not in busy),
            None,
        )
