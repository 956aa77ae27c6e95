"""Room in the cache for an answer under way."""

from __future__ import annotations

from medusa_core.engine.session import Session

_ROWS = 512  # that an answer asks room for at a time: few are as long as they may be


class CacheRoom:
    """Grows the cache with an answer, which may become as long as the context."""

    def __init__(self, session: Session, most_tokens: int, tree_rows: int, shares: int) -> None:
        """Note what an answer needs; nothing grows yet.

        Args:
            session: Whose cache it is.
            most_tokens: The longest that prompt and answer may become.
            tree_rows: Most rows of a tree behind them.
            shares: As how many equal parts of the context the cache may grow to one.
        """
        self._session = session
        self._most_tokens = most_tokens
        self._tree_rows = tree_rows
        self._shares = shares

    @property
    def is_lacking(self) -> bool:
        """The cache must grow before the next step."""
        kv = self._session.kv
        if self._session.is_preempted:
            return True
        return kv.capacity <= self._most_tokens and kv.capacity - kv.length <= self._tree_rows + 1

    def grow(self, num_decided: int) -> None:
        """Ask for room for the answer behind so many tokens.

        Raises:
            OutOfMemoryError: Other answers have it.
        """
        rows = min(self._most_tokens - num_decided, _ROWS)
        self._session.make_room(num_decided + rows, self._tree_rows, self._shares)
