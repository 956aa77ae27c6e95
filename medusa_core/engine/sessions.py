"""The conversations whose rows are still cached."""

from __future__ import annotations

import logging
from collections.abc import Container

from medusa_core.engine.session import Session

log = logging.getLogger(__name__)


class Sessions:
    """Sessions by their ids, those that were used last at the end."""

    def __init__(self) -> None:
        self._by_id: dict[str, Session] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """Which there are."""
        return tuple(self._by_id)

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

    def evict(self, busy: Container[str]) -> bool:
        """Free the cache that hasn't been used for longest.

        Args:
            busy: Sessions that are being answered, which stay.

        Returns:
            Whether there was one.
        """
        idle = next((session_id for session_id in self._by_id if session_id not in busy), None)
        if idle is None:
            return False
        log.info("the cache of an idle session is evicted")
        self.close(idle)
        return True

    def trim(self, busy: Container[str]) -> bool:
        """Let idle sessions keep their committed rows only.

        Args:
            busy: Sessions that are being answered.

        Returns:
            Whether rows have become free.
        """
        idle = [one for session_id, one in self._by_id.items() if session_id not in busy]
        return sum(session.trim() for session in idle) > 0

    def clear(self) -> None:
        """Forget all of them, with the model that their rows are of."""
        self._by_id.clear()
