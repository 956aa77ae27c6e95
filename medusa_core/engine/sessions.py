"""The conversations whose rows are still cached."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

from medusa_core.engine.session import Session

log = logging.getLogger(__name__)


class Sessions:
    """Sessions by their ids, those that were used last at the end."""

    def __init__(self, busy_ids: Callable[[], Container[str]]) -> None:
        """Hold none.

        Args:
            busy_ids: Returns the ids of sessions that are being answered: they aren't evicted.
        """
        self._busy_ids = busy_ids
        self._by_id: dict[str, Session] = {}
        self._kept: Session | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Which there are."""
        return tuple(self._by_id)

    @property
    def all(self) -> tuple[Session, ...]:
        """The sessions."""
        return tuple(self._by_id.values())

    def get(self, session_id: str) -> Session | None:
        """Return a session, if it is there."""
        return self._by_id.get(session_id)

    def pop(self, session_id: str) -> Session | None:
        """Take a session out, if it is there: so it can't be evicted."""
        return self._by_id.pop(session_id, None)

    def put(self, session_id: str, session: Session) -> None:
        """Keep a session as the one used last."""
        self._by_id[session_id] = session

    def close(self, session_id: str) -> None:
        """Forget a session and free its cache, if it is there."""
        session = self.pop(session_id)
        if session is not None:
            session.close()

    @contextmanager
    def kept(self, session: Session) -> Iterator[None]:
        """Don't evict a session while its rows are wanted."""
        self._kept = session
        try:
            yield
        finally:
            self._kept = None

    def remove_idle(self, session: Session) -> bool:
        """Take out a session that isn't being answered; returns whether it was there."""
        session_id = self._idle_id(session)
        return session_id is not None and self.pop(session_id) is not None

    def evict(self) -> bool:
        """Free rows of idle sessions: unused ones, else the cache not used for longest.

        Returns:
            Whether there were any.
        """
        return self.trim() or self.evict_idle()

    def evict_idle(self) -> bool:
        """Free the cache not used for longest. Returns whether there was one."""
        busy = self._busy_ids()
        for session_id, session in self._by_id.items():
            if session_id not in busy and session is not self._kept:
                log.info("the cache of an idle session is evicted")
                self.close(session_id)
                return True
        return False

    def trim(self) -> bool:
        """Let idle sessions keep their committed rows only.

        Returns:
            Whether rows have become free.
        """
        busy = self._busy_ids()
        idle = [one for session_id, one in self._by_id.items() if session_id not in busy]
        return sum(session.trim() for session in idle) > 0

    def clear(self) -> None:
        """Forget all of them, with the model that their rows are of."""
        self._by_id.clear()

    def _idle_id(self, session: Session) -> str | None:
        busy = self._busy_ids()
        return next(
            (one for one, its in self._by_id.items() if its is session and one not in busy), None
        )
